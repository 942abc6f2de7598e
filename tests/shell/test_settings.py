from __future__ import annotations

import os
from pathlib import Path

import pytest

from service.errors import SettingsError
from service.settings import PREFIX, Settings, list_settings
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "settings.yaml")

PATHS = [
    ("CALLGRADE_HOME", "/srv/callgrade", "home", Path("/srv/callgrade")),
    ("CALLGRADE_RUBRIC_DIRS", os.pathsep.join(["/a", "", "/b"]), "rubric_dirs", (Path("/a"), Path("/b"))),
]


@pytest.mark.parametrize(("variable", "text", "field", "value"), [*TABLES["read"], *PATHS])
def test_a_variable_sets_its_field_and_no_other(variable: str, text: str, field: str, value: object) -> None:
    settings = Settings.from_env({variable: text, "PATH": "/bin"})
    assert getattr(settings, field) == value
    others = [name for name in Settings.__dataclass_fields__ if name != field]
    assert [getattr(settings, name) for name in others] == [getattr(Settings(), name) for name in others]


@pytest.mark.parametrize(("variable", "text", "expected"), TABLES["refused"])
def test_a_bad_value_is_named_with_what_was_expected(variable: str, text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({variable: text})
    (problem,) = caught.value.problems
    assert problem.path == variable
    assert expected in problem.message
    assert repr(text) in problem.message


@pytest.mark.parametrize(
    "text",
    ["cache", "http://h", "redis://", "redis:/canary", "redis://:canary@h:x", "redis://h:0", "redis://h#a", "unix://"],
)
def test_a_bad_secret_is_named_and_not_told(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"CALLGRADE_CACHE_URL": text})
    (problem,) = caught.value.problems
    assert problem.path == "CALLGRADE_CACHE_URL"
    assert problem.message.startswith("expected redis://host:port/number, ")
    assert problem.message.endswith(", not what it is set to")


def test_a_secret_is_not_in_the_repr() -> None:
    assert "canary" not in repr(Settings.from_env({"CALLGRADE_CACHE_URL": "redis://:canary@h"}))


def test_every_bad_value_is_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"CALLGRADE_PORT": "x", "CALLGRADE_MAX_STREAMS": "y"})
    assert [problem.path for problem in caught.value.problems] == ["CALLGRADE_PORT", "CALLGRADE_MAX_STREAMS"]


def test_misspelt_variables_are_listed_in_order() -> None:
    environ = {"CALLGRADE_PROT": "1", "CALLGRADE_HOTS": "x", "CALLGRADE_PORT": "1", "CALLGRADE_DEBUG": "1", "PROT": "1"}
    assert Settings.from_env(environ).unknown == ("CALLGRADE_HOTS", "CALLGRADE_PROT")


def test_the_table_lists_every_variable_with_a_default_that_can_be_set() -> None:
    table = list_settings()
    named = [name.removeprefix(PREFIX).lower() for name, _, _ in table]
    assert named == [name for name in Settings.__dataclass_fields__ if name != "unknown"]
    assert Settings.from_env({name: default for name, default, _ in table}) == Settings()
    assert all(meaning.endswith(".") for _, _, meaning in table)
    assert ("CALLGRADE_PORT", "8000", "Port to listen on.") in table
