"""Bodies that break parsers, text that breaks programs, schemas that break validators: an answer below 500 to each, and
nothing changed on the way. Every route that takes a body is asked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from service.core.trace import is_hollow
from tests.api.asgi_caller import JSON, Answer, Ask
from tests.bulk import share
from tests.core.hostile_bodies import BODIES
from tests.tables import named

BODY_ROUTES = ["/v1/fits", "/v1/labels", "/v1/score"]
"""Those of single batches are asked in their own contract: without a batch there is nothing to send a body to."""

LINES_ROUTES = {"/v1/batches", "/v1/calibrations", "/v1/labels/import"}
"""Those that take JSON Lines."""

every_body_route = pytest.mark.parametrize("path", BODY_ROUTES)

REFUSED = {400, 413}
"""What a body is answered that is not the JSON we accept."""


def test_these_are_the_routes_that_take_a_body(app: FastAPI) -> None:
    taking = {route.path for route in app.routes if "POST" in (getattr(route, "methods", None) or ())}
    assert {path for path in taking if "{" not in path} - LINES_ROUTES == {*BODY_ROUTES}


def placed(answer: Answer) -> bool:
    """Whether a problem document says where: by pointer, by line and column, or that it is about the body as a whole."""
    whole = ("not UTF-8", "byte order mark", "empty", "bytes", "at most")
    places = answer.problem["errors"]
    return bool(places) and all(
        one["pointer"] or "column" in one["detail"] or any(word in one["detail"] for word in whole) for one in places
    )


# Whole bodies.


def with_result(document: bytes) -> bytes:
    """A request with a document as what a tool returned."""
    events = b'[{"user":"u"},{"call":{"name":"f"},"result":%b}]' % document
    return b'{"trace":{"format":"callgrade","events":%b},"expected":{"calls":[{"tool":"f"}]}}' % events


ONE_BAD_VALUE = [
    ("NaN", b"NaN"),
    ("an integer of 5,000 digits", b"9" * 5_000),
    ("a lone surrogate, escaped", rb'"\ud800"'),
    ("NUL, escaped", rb'"a\u0000b"'),
    ("a key given twice", b'{"a": 1, "a": 1}'),
    ("arrays 100,000 deep", b"[" * 100_000 + b"]" * 100_000),
    ("a string of 10 MB", b'"' + b"a" * 10_000_000 + b'"'),
    ("300,000 objects", b"[" + b",".join([b"{}"] * 300_000) + b"]"),
]
"""One of each kind: `tests/shell/test_jsonbody.py` has all that the one reader of bodies refuses."""

WRAPPED = {
    "/v1/score": with_result,
    "/v1/fits": lambda value: b'{"fits": [' + value + b"]}",
    "/v1/labels": lambda value: b'{"criterion": "result_groundedness", "label": "pass", "item": ' + value + b"}",
}
"""A body of each route that is fine but for one value."""


@pytest.mark.parametrize("value", named(ONE_BAD_VALUE))
@every_body_route
def test_one_bad_value_spoils_a_body_at_its_place(ask: Ask, path: str, value: bytes) -> None:
    alone, inside = ask("POST", path, value), ask("POST", path, WRAPPED[path](value))
    assert alone.status in REFUSED
    assert alone.problem["errors"]
    assert inside.status in REFUSED
    assert placed(inside)
    assert len(alone.body) + len(inside.body) < 2_000


GOOD = with_result(b"1")
ENCODED = [
    ("nothing", b""),
    ("UTF-16", GOOD.decode().encode("utf-16")),
    ("truncated", GOOD[:-1]),
    ("JSON Lines", GOOD + b"\n" + GOOD),
    ("gzip without saying so", gzip.compress(GOOD)),
    ("a web page", b"<!DOCTYPE html><html></html>"),
]


@pytest.mark.parametrize("body", named(ENCODED))
@every_body_route
def test_a_body_that_is_no_json_document(ask: Ask, path: str, body: bytes) -> None:
    answer = ask("POST", path, body)
    assert answer.status == 400
    assert placed(answer)


@every_body_route
def test_a_compressed_body_is_not_unpacked(ask: Ask, path: str) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    answer = ask("POST", path, bomb, headers=JSON | {"content-encoding": "gzip"})
    assert answer.status == 415
    assert "content-encoding" in answer.problem["detail"]


# Text.


def with_text(text: str) -> dict[str, Any]:
    """A request with one text wherever a trace and an expectation can hold text, that passes where all of it arrives."""
    parameters = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {text: {"type": "string", "description": text, "enum": [text]}},
    }
    events = [
        {"system": text},
        {"user": text},
        {"call": {"name": text, "id": text, "arguments": {text: text}}, "result": {text: text}},
        {"assistant": text},
    ]
    expected = {"calls": [{"tool": text, "args": {text: text}, "weights": {text: 1}, "reason": text}], "answer": text}
    tools = [{"name": text, "description": text, "parameters": parameters}]
    trace = {"format": "callgrade", "id": text, "tools": tools, "events": events, "state": {"initial": text}}
    return {"trace": trace, "expected": expected, "tags": {text: text}}


def with_raw_text(text: str) -> dict[str, Any]:
    """Likewise in a provider's form: arguments and results are strings there, and ids and roles pair them."""
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    messages = [
        {"role": "user", "content": [{"type": text, "text": text}], "name": text},
        {"role": "assistant", "content": text, "refusal": text, "tool_calls": [call, call]},
        {"role": "tool", "tool_call_id": text, "content": text},
    ]
    tools = [
        {"type": "function", "function": {"name": text, "parameters": {"$ref": text, "pattern": text, "$id": text}}}
    ]
    trace = {"format": "openai", "id": text, "tools": tools, "messages": messages}
    return {"trace": trace, "expected": {"calls": [{"tool": text, "args": {"a": text}}]}}


def with_rubrics(text: str) -> Iterator[dict[str, Any]]:
    """Rubrics that hold a text somewhere."""
    criterion = {"id": "decide", "stage": "decide", "check": {"kind": "decide"}}
    yield {"id": "own", "title": text, "description": text, "criteria": [criterion]}
    yield {"id": text, "criteria": [criterion]}
    yield {"id": "own", "criteria": [criterion | {"id": text}, criterion | {text: 1}, criterion | {"weight": text}]}
    checks = [criterion | {"check": {"kind": text}}, {"check": {"kind": "judge", "judge": text}}]
    yield {"id": "own", "criteria": checks}
    yield {"extends": text, "without": [text]}


@pytest.fixture(scope="module")
def texts(shared_data: Path) -> list[str]:
    """The Big List of Naughty Strings, and prompt injections."""
    files = [shared_data / "hostile" / "blns.jsonl", shared_data / "hostile" / "injections.jsonl"]
    return [json.loads(line)["text"] for file in files for line in file.read_text("utf-8").split("\n") if line]


@pytest.mark.whole
@pytest.mark.shared_data
def test_text_in_every_slot_arrives_whole_and_equals_itself(ask: Ask, texts: list[str]) -> None:
    for text in filter(None, share(texts, one_in=4)):  # a tool without a name is another matter
        request = json.dumps({**with_text(text), "judges": "off"}, ensure_ascii=False).encode()
        report = ask("POST", "/v1/score", request).json
        due = "fail" if is_hollow(text) else "pass"  # an answer that says nothing retells no result
        assert (report.get("verdict"), report["trace_id"], report["tags"]) == (due, text, {text: text})
        assert report["steps"][0]["tool"] == text


# Schemas.


HARD_SCHEMAS = {
    "a reference to itself": {"$ref": "#"},
    "a reference to an address": {"$ref": "http://127.0.0.1:9/schema.json"},
    "a pattern that backtracks": {"properties": {"a": {"pattern": "^(a+)+$"}}},
    "a pattern that is none": {"properties": {"a": {"pattern": "("}}},
    "many alternatives": {"anyOf": [{"required": [f"p{n}"]} for n in range(20_000)]},
    "an unknown dialect": {"$schema": "https://example.com/my-dialect"},
}
"""Some of those that `tests/core/test_schemas.py` has."""


@pytest.mark.parametrize("schema", HARD_SCHEMAS.values(), ids=HARD_SCHEMAS)
def test_hard_schemas_are_scored_or_refused_with_their_place(ask: Ask, schema: Any) -> None:
    data = {"a": "a" * 5_000 + "!"}
    tool = {"name": "f", "parameters": schema, "outputSchema": schema}
    events = [{"user": "u"}, {"call": {"name": "f", "arguments": data}, "result": data}]
    request = {"trace": {"format": "callgrade", "tools": [tool], "events": events}, "expected": {"calls": "some"}}
    answer = ask("POST", "/v1/score", request)
    assert answer.status == 200 or (answer.status == 422 and placed(answer))


LARGE = {
    "many messages": {"trace": {"format": "openai", "messages": [{"role": "user", "content": "x"}] * 40_000}},
    "many tags": {"trace": {"format": "openai", "messages": []}, "tags": {f"t{n}": "x" for n in range(65)}},
    "long texts": BODIES["long_texts_to_compare"](600),
    "many calls and expected calls": BODIES["one_tool_reversed"](1_000),
}


@pytest.mark.parametrize("request_", LARGE.values(), ids=LARGE)
def test_large_requests_are_answered(ask: Ask, request_: dict[str, Any]) -> None:
    answer = ask("POST", "/v1/score", request_)
    assert answer.status == 200 or (answer.status in (413, 422) and placed(answer))
