from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from service.errors import InputError, RubricError, TooLargeError
from service.reading.packaged_files import MAX_BYTES, MAX_DEPTH, find_resource, read_yaml
from tests import tables

TABLES = tables.read_yaml(tables.DATA / "reading" / "yaml.yaml")


# What YAML 1.1 turns into something else than what was written.
TRAPS = ["no", "yes", "on", "off", "No", "y", "n", "1:30", "12:30:45", "2024-05-01", "2024-05-01T10:00:00Z"]
TRAPS += ["010", "007", "0o7", "0x1F", "0b1", "1_000", ".5", "1.", "+1", "=", "<<", "1.2.3", "e3", "TrUe"]


JSON_ONLY: list[tuple[str, JsonValue]] = [
    ('{\n\t"a":\t1\n}', {"a": 1}),
    ('["\\ud83d\\ude00", "\\/"]', ["😀", "/"]),
    ('{"a":1,"b":[true,null]}', {"a": 1, "b": [True, None]}),
]


@pytest.mark.parametrize(("text", "value"), [*TABLES["spelt"], *JSON_ONLY])
def test_a_document_is_read_as_written(text: str, value: JsonValue) -> None:
    found = read_yaml(text, source="x.yaml")
    assert json.dumps(found) == json.dumps(value)  # unlike ==, tells 1 from 1.0 and from True


@pytest.mark.parametrize("text", TRAPS)
def test_plain_text_stays_text(text: str) -> None:
    assert read_yaml(f"a: {text}", source="x.yaml") == {"a": text}


@pytest.mark.parametrize("key", ["no", "on", "y", "1:30", "2024-05-01", "007"])
def test_plain_keys_stay_text(key: str) -> None:
    assert read_yaml(f"{key}: 1", source="x.yaml") == {key: 1}


@pytest.mark.parametrize(("text", "place", "message"), [*TABLES["refused"], ("a: \ud800", [1, 4], "U+D800")])
def test_what_is_refused_is_located(text: str, place: list[int], message: str) -> None:
    with pytest.raises(RubricError) as caught:
        read_yaml(text, source="mine.yaml")
    (problem,) = caught.value.problems
    assert problem.path == "mine.yaml"
    assert problem.message.startswith("line {}, column {}: ".format(*place))
    assert message in problem.message


TOO_LARGE = [
    ("a: " + "x" * MAX_BYTES, "more than 64 KiB"),
    ("é" * (MAX_BYTES // 2 + 1), "more than 64 KiB"),
    ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper than 64"),
    ("[" * 900, "nested deeper than 64"),
    ('{"a":' * 9000, "nested deeper than 64"),
    ("- " * 9000 + "x", "nested deeper than 64"),
    ("a: " + "9" * 65, "more than 64 digits"),
]


@pytest.mark.parametrize(("text", "message"), TOO_LARGE, ids=range(len(TOO_LARGE)))
def test_what_is_too_large_is_refused(text: str, message: str) -> None:
    with pytest.raises(TooLargeError, match=message):
        read_yaml(text, source="x.yaml")


def test_the_limits_themselves_are_allowed() -> None:
    assert read_yaml("'" + "x" * (MAX_BYTES - 2) + "'", source="x.yaml") == "x" * (MAX_BYTES - 2)
    assert read_yaml("- " * MAX_DEPTH + "x", source="x.yaml")
    assert read_yaml("-" + "9" * 64, source="x.yaml") == -int("9" * 64)


PRINTABLE = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"]), max_size=8
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | PRINTABLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PRINTABLE, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_read_as_json_in_any_layout(value: JsonValue) -> None:
    for indent in (None, 2, "\t"):
        assert read_yaml(json.dumps(value, indent=indent), source="x") == value


@given(st.text(max_size=60) | st.text("a:-[]{}?|>&*!%@`'\"#,\n \t1.~", max_size=40))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    said = "x: line 1, column 1: read"
    try:
        read_yaml(text, source="x")
    except InputError as error:
        said = str(error)
    assert re.match(r"x: line \d+, column \d+: .", said)


def test_the_c_parser_is_there() -> None:
    assert yaml.__with_libyaml__  # the limits on time hold for it only


@pytest.mark.parametrize("parts", TABLES["absent"])
def test_other_names_are_not_found(parts: list[str]) -> None:
    with pytest.raises(FileNotFoundError, match="callgrade comes with no"):
        find_resource(*parts)
