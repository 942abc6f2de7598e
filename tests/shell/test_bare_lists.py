"""What a JSON list in a file is: one trace where its elements are messages, else a record each."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from service.reading.places import BadRecord, TraceRecord
from service.reading.records import find_traces, join_messages
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
def test_what_is_joined_is_held_up_to_a_limit(text: str, reason: str) -> None:
    (found,) = find_traces(scan_records(io.BytesIO(text.encode()), limits=Limits()), most=20)
    assert isinstance(found, BadRecord)
    assert (
        str(found.error) == f"the document: a {'list' if reason == 'messages' else 'session'} of more than 20 {reason}"
    )
