"""JSON inside strings: what a model wrote as arguments, what a tool returned as text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.core.json.parsing import MAX_DEPTH, MAX_DIGITS, parse
from service.intake.texts import build_tool_call, read_result_content


def nested(depth: int, *, inside: str = "") -> str:
    return '{"a":' + "[" * (depth - 1) + inside + "]" * (depth - 1) + "}"


READ: list[tuple[Any, Any]] = [
    ('{"x": 1}', {"x": 1}),
    (' {"x": 1.0}\n', {"x": 1.0}),
    ('{"x": {"y": [true, null, "z"]}}', {"x": {"y": [True, None, "z"]}}),
    ("{}", {}),
    ("", {}),
    (" \n", {}),
    (None, {}),
    ({"x": 1}, {"x": 1}),
    ({}, {}),
    ('{"x": "NaN"}', {"x": "NaN"}),
    ('{"x": 1e99}', {"x": 1e99}),
    ('{"x": 1e-999}', {"x": 0.0}),
    ('{"x": "1e999 ' + "9" * 80 + '"}', {"x": "1e999 " + "9" * 80}),
    ('{"x": ' + "9" * MAX_DIGITS + "}", {"x": int("9" * MAX_DIGITS)}),
    ('{"x": -' + "9" * MAX_DIGITS + "}", {"x": -int("9" * MAX_DIGITS)}),
    ('{"x": "\\\\u0000"}', {"x": "\\u0000"}),
    ('{"x": "\\ud83d\\ude00"}', {"x": "\U0001f600"}),
    ('{"x": "' + "[" * 100 + '"}', {"x": "[" * 100}),
    ('{"x": [' + "{}," * 99 + "{}]}", {"x": [{}] * 100}),
    (nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
    (nested(MAX_DEPTH, inside='"s"'), json.loads(nested(MAX_DEPTH, inside='"s"'))),
]

UNREAD: list[tuple[Any, str]] = [
    ('{"x": 1', "not valid JSON: EOF"),
    ("{'x': 1}", "not valid JSON: key must be a string"),
    ('{"x": 1,}', "not valid JSON: trailing comma"),
    ('{"x": 1} {"x": 2}', "not valid JSON: trailing characters"),
    ('```json\n{"x": 1}\n```', "not valid JSON"),
    ('{"x": 1, "x": 1}', 'not valid JSON: Detected duplicate key "x"'),
    ('{"x": {"y": 1, "y": 2}}', 'not valid JSON: Detected duplicate key "y"'),
    ('{"x": NaN}', "not valid JSON"),
    ('{"x": -Infinity}', "not valid JSON"),
    ('{"x": Infinity}', "not valid JSON"),
    ('{"x": True}', "not valid JSON"),
    ('{"x": "\\ud800"}', "not valid JSON"),
    ('{"x": "\ud800"}', "not Unicode text: a lone surrogate"),
    ('{"x": "\\u0000"}', "a NUL character in a string"),
    ('{"\\u0000": 1}', "a NUL character in a string"),
    ('{"x": 1e999}', "a number too large for a float"),
    ('{"x": [1, -1E+400]}', "a number too large for a float"),
    ('{"x": ' + "9" * 400 + ".5}", "a number too large for a float"),
    ('{"x": 1' + "0" * MAX_DIGITS + "}", "an integer of more than 64 digits"),
    ('{"x": -1' + "0" * MAX_DIGITS + "}", "an integer of more than 64 digits"),
    ('{"x": ' + "9" * 100_000 + "}", "not valid JSON: number out of range"),
    (nested(MAX_DEPTH + 1), "nested deeper than 64"),
    (nested(MAX_DEPTH + 1, inside="1"), "nested deeper than 64"),
    (nested(150), "nested deeper than 64"),
    (nested(100_000), "nested deeper than 64"),
    ("[1]", "an array where an object is expected"),
    ('"x"', "a string where an object is expected"),
    ("7", "a number where an object is expected"),
    ("7.5", "a number where an object is expected"),
    ("true", "a boolean where an object is expected"),
    ("null", "null where an object is expected"),
    ([1], "an array where an object is expected"),
    (True, "a boolean where an object is expected"),
    (7, "a number where an object is expected"),
]


def label(value: object) -> str:
    return ascii(value)[:40]


@pytest.mark.parametrize(("text", "wanted"), READ, ids=label)
def test_readable_arguments(text: Any, wanted: Any) -> None:
    call = build_tool_call("c", "f", text)
    assert (call.arguments, call.problem, call.raw) == (wanted, None, text)


@pytest.mark.parametrize(("text", "why"), UNREAD, ids=label)
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


RESULTS: list[tuple[Any, Any]] = [
    ('{"x": 1}', {"x": 1}),
    (" [1, 2] ", [1, 2]),
    ("[]", []),
    ("123456", "123456"),
    ("true", "true"),
    ("null", "null"),
    ('"x"', '"x"'),
    ("", ""),
    ("plain", "plain"),
    ("[1] Paris is the capital.", "[1] Paris is the capital."),
    ("{'x': 1}", "{'x': 1}"),
    ('{"x": 1, "x": 2}', '{"x": 1, "x": 2}'),
    ('{"x": NaN}', '{"x": NaN}'),
    (nested(65), nested(65)),
    (None, None),
    (7, 7),
    ({"x": "{}"}, {"x": "{}"}),
    ([], ""),
    ([{"type": "text", "text": '{"x": 1}'}], {"x": 1}),
    ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    ([{"type": "output_text", "text": "a"}], "a"),
    ([{"type": "text", "text": "a"}, {"type": "image"}], [{"type": "text", "text": "a"}, {"type": "image"}]),
    ([{"type": "text", "text": None}], [{"type": "text", "text": None}]),
    (["a", {"type": "text", "text": "b"}], ["a", {"type": "text", "text": "b"}]),
]


@pytest.mark.parametrize(("given", "wanted"), RESULTS, ids=label)
def test_results(given: Any, wanted: Any) -> None:
    assert read_result_content(given) == wanted
    assert type(read_result_content(given)) is type(wanted)
