"""Bodies that break parsers, text that breaks programs, schemas that break validators: an answer below 500 to each, and
nothing changed on the way. Every route that takes a body is asked."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from service.core.hollow_answers import is_hollow
from tests.api.asgi_caller import JSON, Answer, Ask
from tests.bulk import share

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


@pytest.fixture(scope="module")
def parsing_suite(shared_data: Path) -> list[tuple[str, str, bytes]]:
    """Nicolas Seriot's JSONTestSuite: name, what parsers shall do (y accept, n reject, i either), the document."""
    with gzip.open(shared_data / "hostile" / "json_test_suite.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [(row["name"], row["expected"], base64.b64decode(row["content_base64"])) for row in rows]


WELL_FORMED_BUT_REFUSED = {
    "y_object_duplicated_key.json",
    "y_object_duplicated_key_and_value.json",
    "y_object_escaped_null_in_key.json",
    "y_string_null_escape.json",
}
"""JSON by its grammar, and yet refused: one of the two values would be lost, or the text would be cut short somewhere."""


@pytest.mark.whole
@pytest.mark.shared_data
@every_body_route
def test_the_parsing_suite_as_bodies(ask: Ask, parsing_suite: list[tuple[str, str, bytes]], path: str) -> None:
    """One route is given all of it always; the others have the same reader."""
    wrong: list[tuple[str, int]] = []
    for name, expected, document in share(parsing_suite, one_in=1 if path == "/v1/score" else 7):
        answer = ask("POST", path, document)
        refused = answer.status in REFUSED and bool(answer.problem["errors"])
        accepted = answer.status in (200, 422)
        good = refused if expected == "n" or name in WELL_FORMED_BUT_REFUSED else accepted
        if not (good or (expected == "i" and refused)):
            wrong.append((name, answer.status))
    assert not wrong


def with_result(document: bytes) -> bytes:
    """A request with a document as what a tool returned."""
    return (
        b'{"trace":{"format":"callgrade","events":[{"user":"u"},{"call":{"name":"f"},"result":'
        + document
        + b'}]},"expected":{"calls":[{"tool":"f"}]}}'
    )


def with_argument(document: bytes, expected: bytes) -> bytes:
    """A request with a document as an argument, and what was expected there."""
    return (
        b'{"trace":{"format":"callgrade","events":[{"user":"u"},{"call":{"name":"f","arguments":{"v":'
        + document
        + b'}}}]},"expected":{"calls":[{"tool":"f","args":{"v":{"kind":"exact","value":'
        + expected
        + b"}}}]}}"
    )


@pytest.mark.shared_data
def test_what_parsers_must_accept_arrives_unchanged(ask: Ask, parsing_suite: list[tuple[str, str, bytes]]) -> None:
    accepted = [(n, d) for n, e, d in parsing_suite if e == "y" and n not in WELL_FORMED_BUT_REFUSED]
    assert len(accepted) > 80
    wrong: list[tuple[str, bytes]] = []
    for name, document in accepted:
        # The same value in another spelling: had either been changed on the way, they would differ.
        respelt = json.dumps(json.loads(document), ensure_ascii=False).encode()
        answer = ask("POST", "/v1/score", with_argument(document, respelt))
        if answer.status != 200 or answer.json["steps"][0]["score"] != 1.0:
            wrong.append((name, answer.body))
        if ask("POST", "/v1/score", with_result(document)).status != 200:
            wrong.append((name, document))
    assert not wrong


ONE_BAD_VALUE = [
    ("NaN", b"NaN"),
    ("Infinity", b"Infinity"),
    ("-Infinity", b"-Infinity"),
    ("nan in lower case", b"nan"),
    ("over a float", b"1e999"),
    ("under a float", b"-1e999"),
    ("too small for a float", b"1e-999"),
    ("a float spelt with 5,000 digits and too large", b"9" * 5_000 + b".0"),
    ("an integer of 65 digits", b"9" * 65),
    ("an integer of 5,000 digits", b"9" * 5_000),
    ("a negative integer of 5,000 digits", b"-" + b"9" * 5_000),
    ("a lone high surrogate, escaped", rb'"\ud800"'),
    ("a lone low surrogate, escaped", rb'"\udc00"'),
    ("surrogates in the wrong order", rb'"\udc00\ud800"'),
    ("a surrogate in a key", rb'{"\ud800": 1}'),
    ("a surrogate in bytes", b'"\xed\xa0\x80"'),
    ("overlong bytes", b'"\xc0\x80"'),
    ("latin-1", b'"\xe9"'),
    ("NUL, escaped", rb'"a\u0000b"'),
    ("NUL in a key", rb'{"\u0000": 1}'),
    ("NUL in bytes", b'"a\x00b"'),
    ("a bare line feed", b'"a\nb"'),
    ("a key given twice", b'{"a": 1, "a": 1}'),
    ("a key given twice in two spellings", rb'{"a": 1, "\u0061": 2}'),
    ("a long key given twice", b'{"%b": 1, "%b": 2}' % (b"k" * 100_000, b"k" * 100_000)),
    ("a comment", b"1 /* one */"),
    ("a trailing comma", b"[1,]"),
    ("single quotes", b"'a'"),
    ("hexadecimal", b"0x10"),
    ("a leading zero", b"01"),
    ("a leading plus", b"+1"),
    ("python", b"None"),
    ("arrays 100 deep", b"[" * 100 + b"]" * 100),
    ("arrays 500 deep", b"[" * 500 + b"]" * 500),
    ("arrays 100,000 deep", b"[" * 100_000 + b"]" * 100_000),
    ("objects 100 deep", b'{"a":' * 100 + b"1" + b"}" * 100),
    ("objects 100,000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ("300,000 objects", b"[" + b",".join([b"{}"] * 300_000) + b"]"),
    ("a string of 2 MB", b'"' + b"a" * 2_000_000 + b'"'),
    ("a string of 10 MB", b'"' + b"a" * 10_000_000 + b'"'),
]

WRAPPED = {
    "/v1/score": with_result,
    "/v1/fits": lambda value: b'{"fits": [' + value + b"]}",
    "/v1/labels": lambda value: b'{"criterion": "result_groundedness", "label": "pass", "item": ' + value + b"}",
}
"""A body of each route that is fine but for one value."""

bad_values = pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in ONE_BAD_VALUE])


@bad_values
@every_body_route
def test_one_bad_value_spoils_a_body_at_its_place(ask: Ask, path: str, value: bytes) -> None:
    alone, inside = ask("POST", path, value), ask("POST", path, WRAPPED[path](value))
    assert alone.status in REFUSED
    assert alone.problem["errors"]
    assert inside.status in REFUSED
    assert placed(inside)
    assert len(alone.body) + len(inside.body) < 2_000


POINTED = [
    (b"1e999", 400),
    (b"[0, 9e400]", 400),
    (rb'"a\u0000b"', 400),
    (b"9" * 65, 413),
    (b'"' + b"a" * 1_000_001 + b'"', 413),
    (b"[" * 61 + b"]" * 61, 413),
]


@pytest.mark.parametrize(("value", "status"), POINTED)
def test_what_was_read_and_then_refused_is_named_by_pointer(ask: Ask, value: bytes, status: int) -> None:
    answer = ask("POST", "/v1/score", with_result(value))
    assert answer.status == status
    (place,) = answer.problem["errors"]
    assert place["pointer"].startswith("/trace/events/1/result")


LIMITS = [
    ("64 levels", b"[" * 60 + b"]" * 60, 200),
    ("65 levels", b"[" * 61 + b"]" * 61, 413),
    ("64 digits", b"9" * 64, 200),
    ("65 digits", b"9" * 65, 413),
    ("a million characters", b'"' + b"a" * 1_000_000 + b'"', 200),
    ("a million characters and one", b'"' + b"a" * 1_000_001 + b'"', 413),
    ("4 MB of white space", b" " * 4_000_000 + b"1", 200),
    ("1e308", b"1e308", 200),
    ("the smallest float", b"5e-324", 200),
    ("a pair of surrogates", rb'"\ud83d\ude00"', 200),
]


@pytest.mark.parametrize(("value", "status"), [pytest.param(v, s, id=n) for n, v, s in LIMITS])
def test_limits_are_where_they_are_said_to_be(ask: Ask, value: bytes, status: int) -> None:
    assert ask("POST", "/v1/score", with_result(value)).status == status


GOOD = with_result(b"1")
ENCODED = [
    ("nothing", b""),
    ("white space", b" \r\n\t"),
    ("UTF-8 with a byte order mark", b"\xef\xbb\xbf" + GOOD),
    ("UTF-16", GOOD.decode().encode("utf-16")),
    ("UTF-16 LE", GOOD.decode().encode("utf-16-le")),
    ("UTF-16 BE", GOOD.decode().encode("utf-16-be")),
    ("UTF-32", GOOD.decode().encode("utf-32")),
    ("truncated", GOOD[:-1]),
    ("truncated in a string", GOOD[:20]),
    ("two documents", GOOD + GOOD),
    ("JSON Lines", GOOD + b"\n" + GOOD),
    ("gzip without saying so", gzip.compress(GOOD)),
    ("a form", b"trace=1&expected=2"),
    ("a web page", b"<!DOCTYPE html><html></html>"),
    ("NULs", b"\0" * 1_000),
]


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in ENCODED])
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


MATCHERS: list[dict[str, Any]] = [
    {"kind": "pattern", "pattern": ...},
    {"kind": "pattern", "pattern": ..., "search": True},
    {"kind": "contains", "value": ..., "ignore_case": True},
    {"kind": "prefix", "value": ...},
    {"kind": "suffix", "value": ..., "ignore_case": True},
    {"kind": "similar", "value": ..., "metric": "levenshtein"},
    {"kind": "similar", "value": ..., "metric": "cosine"},
    {"kind": "similar", "value": ..., "metric": "arcade_cosine"},
    {"kind": "similar", "value": ..., "metric": "token_set"},
    {"kind": "json_similar", "value": {"a": ...}},
    {"kind": "datetime", "value": ...},
    {"kind": "datetime", "value": "2024-01-01", "formats": [...]},
    {"kind": "datetime", "value": "2024-01-01", "assume_zone": ...},
    {"kind": "numeric", "value": ..., "cast": True},
    {"kind": "one_of", "values": [...]},
    {"kind": ...},
]


def filled(template: Any, text: str) -> Any:
    if template is ...:
        return text
    if isinstance(template, dict):
        return {key: filled(value, text) for key, value in template.items()}
    return [filled(value, text) for value in template] if isinstance(template, list) else template


def with_matchers(text: str) -> Iterator[dict[str, Any]]:
    """Requests that compare a text with matchers made of it."""
    events = [{"call": {"name": "f", "arguments": {"a": text}}}]
    for matcher in MATCHERS:
        expected = {"calls": [{"tool": "f", "args": {"a": filled(matcher, text)}}]}
        yield {"trace": {"format": "callgrade", "events": events}, "expected": expected}


def with_rubrics(text: str) -> Iterator[dict[str, Any]]:
    """Rubrics that hold a text somewhere."""
    criterion = {"id": "decide", "stage": "decide", "check": {"kind": "decide"}}
    yield {"id": "own", "title": text, "description": text, "criteria": [criterion]}
    yield {"id": text, "criteria": [criterion]}
    yield {"id": "own", "criteria": [criterion | {"id": text}, criterion | {text: 1}, criterion | {"weight": text}]}
    yield {
        "id": "own",
        "criteria": [criterion | {"check": {"kind": text}}, {"check": {"kind": "judge", "judge": text}}],
    }
    yield {"extends": text, "without": [text]}


@pytest.fixture(scope="module")
def texts(shared_data: Path) -> list[str]:
    """The Big List of Naughty Strings, and prompt injections."""
    files = [shared_data / "hostile" / "blns.jsonl", shared_data / "hostile" / "injections.jsonl"]
    return [json.loads(line)["text"] for file in files for line in file.read_text("utf-8").split("\n") if line]


def many(ask: Ask, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reports of requests, and the problems of those that have none."""
    answers = [ask("POST", "/v1/score", json.dumps(one, ensure_ascii=False).encode()) for one in requests]
    return [
        {"report": one.json, "error": None} if one.status == 200 else {"report": None, "error": one.problem}
        for one in answers
    ]


@pytest.mark.whole
@pytest.mark.shared_data
def test_text_in_every_slot_arrives_whole_and_equals_itself(ask: Ask, texts: list[str]) -> None:
    named = [text for text in share(texts, one_in=4) if text]  # a tool without a name is another matter
    results = many(ask, [{**with_text(text), "judges": "off"} for text in named])
    wrong = [
        text
        for text, result in zip(named, results, strict=True)
        if (report := result["report"]) is None
        or (report["verdict"], report["trace_id"], report["tags"]) != (_due(text), text, {text: text})
        or report["steps"][0]["tool"] != text
    ]
    assert not wrong


def _due(text: str) -> str:
    """An answer that says nothing retells no result."""
    return "fail" if is_hollow(text) else "pass"


@pytest.mark.whole
@pytest.mark.shared_data
def test_text_in_a_providers_form_is_scored_or_refused_with_its_place(ask: Ask, texts: list[str]) -> None:
    for result in many(ask, [with_raw_text(text) for text in share(texts, one_in=4)]):
        assert result["report"] or result["error"]["errors"][0]["pointer"]


@pytest.mark.shared_data
def test_an_empty_text_is_no_error_of_ours(ask: Ask) -> None:
    assert ask("POST", "/v1/score", json.dumps(with_text("")).encode()).status == 422


@pytest.mark.whole
@pytest.mark.shared_data
def test_text_in_matchers_is_compared_or_refused_with_its_place(ask: Ask, texts: list[str]) -> None:
    for text in share(texts, one_in=15):
        for result in many(ask, list(with_matchers(text))):
            assert result["report"] or result["error"]["errors"][0]["pointer"].startswith("/expected/calls/0/args/a")


# Schemas.


@pytest.fixture(scope="module")
def schemas(shared_data: Path) -> list[dict[str, Any]]:
    """Groups of the JSON Schema test suite that follow references, loop and match patterns: schema, tests."""
    suite = json.loads((shared_data / "hostile" / "json_schema_2020_12.json").read_text("utf-8"))
    return [group for groups in suite["files"].values() for group in groups]


@pytest.mark.shared_data
def test_schemas_that_refer_and_loop_are_scored_or_refused_with_their_place(
    ask: Ask, schemas: list[dict[str, Any]]
) -> None:
    for group in schemas:
        for test in group["tests"]:
            body = json.dumps(with_schema(group["schema"], test["data"])).encode()
            answer = ask("POST", "/v1/score", body)
            assert answer.status == 200 or (answer.status == 422 and placed(answer)), group["description"]


def with_schema(schema: Any, data: Any) -> dict[str, Any]:
    """A request with a tool's schema, for what it takes and for what it gives."""
    tool = {"name": "f", "parameters": schema, "outputSchema": schema}
    arguments = data if isinstance(data, dict) else {"value": data}
    events = [{"user": "u"}, {"call": {"name": "f", "arguments": arguments}, "result": data}]
    return {"trace": {"format": "callgrade", "tools": [tool], "events": events}, "expected": {"calls": "some"}}


def twice(n: int) -> dict[str, Any]:
    """A schema that refers to another one twice."""
    return {"allOf": [{"$ref": f"#/$defs/d{n}"}] * 2}


HARD_SCHEMAS: list[tuple[str, Any, Any]] = [
    ("a reference to itself", {"$ref": "#"}, {}),
    ("a reference to nowhere", {"$ref": "#/definitions/none"}, {}),
    ("a reference to a file", {"$ref": "file:///etc/passwd"}, {}),
    ("a reference to an address", {"$ref": "http://127.0.0.1:9/schema.json"}, {}),
    ("two to the thirtieth", {"$defs": {"d30": {}} | {f"d{n}": twice(n + 1) for n in range(30)}, "$ref": "#/$defs/d0"}, {}),
    ("a pattern that backtracks", {"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 5_000 + "!"}),
    ("a pattern that repeats", {"properties": {"a": {"pattern": "(?:a{0,1000}){0,1000}"}}}, {"a": "a" * 1_000}),
    ("a pattern that is none", {"properties": {"a": {"pattern": "("}}}, {"a": "a"}),
    ("many names", {"properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}, {"p1": 1}),
    ("many alternatives", {"anyOf": [{"required": [f"p{n}"]} for n in range(20_000)]}, {}),
    ("unique items", {"properties": {"a": {"uniqueItems": True}}}, {"a": [[n] for n in range(20_000)]}),
    ("a type that is none", {"type": "strnig"}, {}),
    ("numbers where schemas belong", {"properties": {"a": 7}}, {"a": 1}),
    ("an unknown dialect", {"$schema": "https://example.com/my-dialect"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "data"), [pytest.param(schema, data, id=name) for name, schema, data in HARD_SCHEMAS]
)
def test_hard_schemas_are_scored_or_refused_with_their_place(ask: Ask, schema: Any, data: Any) -> None:
    answer = ask("POST", "/v1/score", json.dumps(with_schema(schema, data)).encode())
    assert answer.status == 200 or (answer.status == 422 and placed(answer))


LARGE = [
    ("many messages", {"trace": {"format": "openai", "messages": [{"role": "user", "content": "x"}] * 40_000}}),
    ("many calls, one expected", {
        "trace": {"format": "callgrade", "events": [{"call": {"name": "f", "arguments": {"n": n}}} for n in range(1_000)]},
        "expected": {"calls": [{"tool": "f", "args": {"n": 1}}]},
    }),
    ("many calls, many expected", {
        "trace": {"format": "callgrade", "events": [{"call": {"name": "f", "arguments": {"n": n}}} for n in range(200)]},
        "expected": {"calls": [{"tool": "f", "args": {"n": n}} for n in reversed(range(200))]},
    }),
    ("long texts that are nearly alike", {
        "trace": {"format": "callgrade", "events": [{"call": {"name": "f", "arguments": {"a": "ab" * 200_000}}}]},
        "expected": {"calls": [{"tool": "f", "args": {"a": {"kind": "similar", "value": "ba" * 200_000}}}]},
    }),
    ("a pattern that backtracks", {
        "trace": {"format": "callgrade", "events": [{"call": {"name": "f", "arguments": {"a": "a" * 50_000 + "!"}}}]},
        "expected": {"calls": [{"tool": "f", "args": {"a": {"kind": "pattern", "pattern": "(a|a)*b"}}}]},
    }),
    ("many tags", {"trace": {"format": "openai", "messages": []}, "tags": {f"t{n}": "x" for n in range(65)}}),
    ("many tools", {"trace": {"format": "openai", "messages": [], "tools": [{"name": f"f{n}"} for n in range(20_000)]}}),
]  # fmt: skip


@pytest.mark.parametrize("request_", [pytest.param(request, id=name) for name, request in LARGE])
def test_large_requests_are_answered(ask: Ask, request_: dict[str, Any]) -> None:
    answer = ask("POST", "/v1/score", json.dumps(request_).encode())
    assert answer.status == 200 or (answer.status in (413, 422) and placed(answer))
