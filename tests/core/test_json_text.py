"""JSON inside strings: what a model wrote as arguments, what a tool returned as text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.core.json.parsing import MAX_DEPTH, MAX_DIGITS, parse
from service.intake.texts import build_tool_call, read_result_content
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "reading" / "json_text.yaml")


def nested(depth: int, *, inside: str = "") -> str:
    return '{"a":' + "[" * (depth - 1) + inside + "]" * (depth - 1) + "}"


LONG = [
    ('{"x": "\\ud83d\\ude00"}', {"x": "\U0001f600"}),
    ('{"x": [' + "{}," * 99 + "{}]}", {"x": [{}] * 100}),
    (nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
    (nested(MAX_DEPTH, inside='"s"'), json.loads(nested(MAX_DEPTH, inside='"s"'))),
]
TOO_LONG = [
    ('{"x": "\\ud800"}', "not valid JSON"),
    ('{"x": "\ud800"}', "not Unicode text: a lone surrogate"),
    ('{"x": ' + "9" * 400 + ".5}", "a number too large for a float"),
    ('{"x": 1' + "0" * MAX_DIGITS + "}", "an integer of more than 64 digits"),
    ('{"x": ' + "9" * 100_000 + "}", "not valid JSON: number out of range"),
    *[(nested(depth), "nested deeper than 64") for depth in (MAX_DEPTH + 1, 150, 100_000)],
]


def label(value: object) -> str:
    return ascii(value)[:40]


@pytest.mark.parametrize(("text", "wanted"), [*TABLES["read"], *LONG], ids=label)
def test_readable_arguments(text: Any, wanted: Any) -> None:
    call = build_tool_call("c", "f", text)
    assert (call.arguments, call.problem, call.raw) == (wanted, None, text)


@pytest.mark.parametrize(("text", "why"), [*TABLES["unread"], *TOO_LONG], ids=label)
def test_unreadable_arguments_are_kept_with_the_reason(text: Any, why: str) -> None:
    call = build_tool_call("c", "f", text)
    assert (call.arguments, call.raw) == (None, text)
    assert call.problem is not None
    assert call.problem.startswith(why)
    assert len(call.problem) < 300


scalars = st.none() | st.booleans() | st.integers(-(10**63), 10**63) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
documents = st.recursive(scalars | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)


@given(documents)
def test_parse_reads_back_what_json_writes(value: Any) -> None:
    assert parse(json.dumps(value)) == value
    assert json.dumps(parse(json.dumps(value))) == json.dumps(value)


@given(st.text() | st.text('{}[]":,0123456789eE+-.\\u \0\ud800') | documents.map(json.dumps))
@example("[" * 10_000)
@example('{"a":' * 10_000)
@example("1e999")
def test_no_string_raises_and_none_is_read_against_the_rules(text: str) -> None:
    call = build_tool_call("", "f", text)
    assert call.id is None
    assert (call.arguments is None) == (call.problem is not None)
    content = read_result_content(text)
    assert content == text or json.dumps(content, allow_nan=False)


@pytest.mark.parametrize(("given", "wanted"), [*TABLES["results"], (nested(65), nested(65))], ids=label)
def test_results(given: Any, wanted: Any) -> None:
    assert read_result_content(given) == wanted
    assert type(read_result_content(given)) is type(wanted)
