"""What a file holds: traces of messages or records, several replies to one request, and blocks with the records of the whole."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from service.intake.reading import TraceInput, guess_format, read_trace
from service.reading.blocks import list_blocks
from service.reading.places import PLAIN, BadRecord, RecordPlace, TraceRecord
from service.reading.records import find_traces, join_messages, split_samples
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records

SAID = {"role": "user", "content": "Hi"}
CHUNK = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "a"}}]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
WHOLE = {"messages": [SAID]}
LISTS: dict[str, tuple[list[Any], list[Any]]] = {
    "messages": ([SAID, SAID], [{"messages": [SAID, SAID]}]),
    "one message": ([SAID], [{"messages": [SAID]}]),
    "LangChain's": ([{"type": "human", "content": "Hi"}], [{"messages": [{"type": "human", "content": "Hi"}]}]),
    "chunks": ([CHUNK, CHUNK], [{"chunks": [CHUNK, CHUNK]}]),
    "items of the Responses API": ([SAID, CALL], [{"items": [SAID, CALL]}]),
    "traces": ([WHOLE, WHOLE], [WHOLE, WHOLE]),
    "requests": ([{"trace": WHOLE}], [{"trace": WHOLE}]),
    "a message before a trace": ([SAID, WHOLE], [SAID, WHOLE]),
    "a trace before a message": ([WHOLE, SAID], [WHOLE, SAID]),
}


def scan(text: str) -> list[Any]:
    records = join_messages(scan_records(io.BytesIO(text.encode()), limits=Limits()))
    return [record.value if isinstance(record, TraceRecord) else record.error for record in records]


@pytest.mark.parametrize(("given", "wanted"), LISTS.values(), ids=LISTS)
def test_a_list_of_messages_is_one_trace(given: list[Any], wanted: list[Any]) -> None:
    assert scan(json.dumps(given)) == wanted


DOCUMENTS = {
    "a line break after a bracket": '{"messages":[\n {"role":"user"},\n {"role":"user"}]}',
    "after a comma": '{"id": "x",\n"messages": [],\n"tools": []}',
    "after a colon": '{"messages":\n[]}',
    "an object on the second line": '{"messages":[\n{}\n]}',
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_is_one_however_it_is_broken_into_lines(text: str) -> None:
    assert scan(text) == [json.loads(text)]


def test_a_broken_first_line_does_not_spoil_the_second() -> None:
    broken, whole = scan('{"messages": [{"role": "us\n{"messages": []}\n')
    assert (str(broken) != "", whole) == (True, {"messages": []})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"role": "user", "content": "Hi"}' + ',{"role": "user", "content": "Hi"}' * 20 + "]", "messages"),
        ('{"type": "user", "sessionId": "s", "uuid": "u", "message": {}}\n' * 22, "lines"),
    ],
    ids=["messages", "lines of a session"],
)
def test_what_is_joined_is_held_up_to_a_limit(text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.reading.records.MAX_JOINED", 20)
    (found,) = find_traces(scan_records(io.BytesIO(text.encode()), limits=Limits()))
    assert isinstance(found, BadRecord)
    assert (
        str(found.error) == f"the document: a {'list' if reason == 'messages' else 'session'} of more than 20 {reason}"
    )


INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)
ASKED = {"messages": [{"role": "user", "content": "q"}]}
CHOICES = {"choices": [{"message": {"role": "assistant", "content": text}} for text in ("A", "B")]}
CANDIDATES = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}} for text in ("A", "B")]}
RECORDS: dict[str, dict[str, Any]] = {
    "openai": {**ASKED, **CHOICES},
    "exchange": {"request": ASKED, "response": CHOICES},
    "a batch's result": {"custom_id": "c", "response": {"status_code": 200, "body": CHOICES}},
    "litellm": {"litellm_call_id": "x", "call_type": "completion", **ASKED, "response": CHOICES},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "q"}]}], **CANDIDATES},
}


def split(value: dict[str, Any]) -> list[Any]:
    return [
        record.value
        for record in split_samples([TraceRecord(RecordPlace("f"), value)])
        if isinstance(record, TraceRecord)
    ]


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_each_reply_is_a_trace(record: dict[str, Any]) -> None:
    traces = [read_trace(INPUT.validate_python({"format": guess_format(one), **one})) for one in split(record)]
    assert [(trace.answer, trace.unread) for trace in traces] == [("A", ()), ("B", ())]


LIMITS = Limits(max_bytes=10_000)
TRACE: dict[str, Any] = {"messages": [{"role": "user", "content": "?"}]}
SPAN = {"traceId": "0" * 32, "spanId": "1" * 16, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
SESSION = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "?"}}


def dump(*records: Any, indent: int | None = None, end: str = "\n") -> bytes:
    return "".join(json.dumps(one, indent=indent) + end for one in records).encode()


TRACES = [TRACE | {"id": str(n)} for n in range(9)]
FILES = [
    ("lines", dump(*TRACES), True),
    ("no end of the last line", dump(*TRACES).rstrip(), True),
    ("Windows' lines", dump(*TRACES, end="\r\n"), True),
    ("blank lines", dump(*TRACES, end="\n\n"), True),
    ("lines that are cut", b'{"a": [\n' + dump(*TRACES[:4]) + b'{"b"\n\n[1]\n' + dump(*TRACES) + b"{", True),
    ("a line that is too long", dump(*TRACES[:4], {"messages": "x" * 20_000}, *TRACES), True),
    ("objects over several lines", dump(*TRACES, indent=1), False),
    ("a list", json.dumps(TRACES).encode(), False),
    ("a session", dump(*[SESSION] * 9), False),
    ("a session after traces", dump(*TRACES, *[SESSION] * 20), False),
    ("spans", dump(*[{"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}] * 9), False),
    ("packed", gzip.compress(dump(*TRACES)), False),
    ("a table", b"prompt,output\n" + b"a,b\n" * 99, False),
    ("nothing", b"", False),
]


@pytest.mark.parametrize(("what", "data", "is_cut"), FILES)
def test_blocks_hold_the_records_of_the_file(what: str, data: bytes, is_cut: bool, tmp_path: Path) -> None:
    file = tmp_path / ("in.csv" if what == "a table" else "in.jsonl")
    file.write_bytes(data)
    whole = list(scan_records(file, limits=LIMITS))
    for least in (1, 100, 300, 10**6):
        blocks = list_blocks(str(file), LIMITS, PLAIN, least=least)
        found = [one for block in blocks for one in block.scan(LIMITS, PLAIN)]
        assert list(map(describe, found)) == list(map(describe, whole)), (what, least)
        assert (len(blocks) > 1) is (is_cut and least < 10**6), (what, least, len(blocks))
        assert [block.number for block in blocks] == [*range(len(blocks))]


def describe(record: Any) -> tuple[str, object]:
    return str(record.place), str(record.error) if isinstance(record, BadRecord) else record.value


def test_a_file_that_is_not_there_is_a_block_that_says_so(tmp_path: Path) -> None:
    [block] = list_blocks(str(tmp_path / "none"), LIMITS, PLAIN)
    [record] = block.scan(LIMITS, PLAIN)
    assert isinstance(record, BadRecord)
