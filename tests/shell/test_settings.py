from __future__ import annotations

import os
from pathlib import Path

import pytest

from service.errors import SettingsError
from service.settings import PREFIX, Settings, list_settings
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "settings.yaml")

READ = [
    ("CALLGRADE_HOST", "0.0.0.0", "host", "0.0.0.0"),  # noqa: S104 (a value to read, nothing listens)
    ("CALLGRADE_HOST", "::1", "host", "::1"),
    ("CALLGRADE_PORT", "1", "port", 1),
    ("CALLGRADE_PORT", "65535", "port", 65535),
    ("CALLGRADE_MAX_BODY_BYTES", "1024", "max_body_bytes", 1024),
    ("CALLGRADE_GRACEFUL_SECONDS", "0", "graceful_seconds", 0),
    ("CALLGRADE_LOG_LEVEL", "warning", "log_level", "WARNING"),
    ("CALLGRADE_HOME", "/srv/callgrade", "home", Path("/srv/callgrade")),
    ("CALLGRADE_RUBRIC_DIRS", os.pathsep.join(["/a", "", "/b"]), "rubric_dirs", (Path("/a"), Path("/b"))),
    ("CALLGRADE_CACHE_URL", "redis://user:pw@cache:6379/1", "cache_url", "redis://user:pw@cache:6379/1"),
    ("CALLGRADE_CACHE_URL", "unix:///run/redis.sock", "cache_url", "unix:///run/redis.sock"),
    ("CALLGRADE_CACHE_TTL_DAYS", "1", "cache_ttl_days", 1),
    ("CALLGRADE_CACHE_MAX_BYTES", "1048576", "cache_max_bytes", 2**20),
    ("CALLGRADE_PORT", "", "port", 8000),
    ("CALLGRADE_LOG_LEVEL", "", "log_level", "INFO"),
]


@pytest.mark.parametrize(("variable", "text", "field", "value"), READ)
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
