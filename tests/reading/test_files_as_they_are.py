"""Files as people have them: packed, in any encoding, as tables and event streams; what is read is the same."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from service.intake.reading import read_trace
from service.reading.bare_traces import build_body
from service.reading.places import BadRecord, Layout, TraceRecord
from service.reading.records import find_traces, split_pages
from service.reading.request import read_request
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records

PLAIN = Limits(max_bytes=2**20, max_string=2**20, max_items=10_000)
RECORD = {"messages": [{"role": "user", "content": "Grüße aus Åre"}], "id": "1"}
TEXT = json.dumps(RECORD, ensure_ascii=False)
PRETTY = json.dumps(RECORD, ensure_ascii=False, indent=2)


def pack(*files: tuple[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files:
            archive.writestr(name, text)
    return stream.getvalue()


def read(path: Path, layout: Layout = Layout()) -> list[Any]:  # noqa: B008 (it cannot change)
    records = split_pages(scan_records(path, limits=PLAIN, layout=layout))
    return [f"! {record.error}" if isinstance(record, BadRecord) else record.value for record in records]


FILES: list[tuple[str, bytes, int]] = [
    ("pretty.json", PRETTY.encode(), 1),
    ("one after the other.json", (PRETTY + PRETTY).encode(), 2),
    ("several in a line.jsonl", (TEXT + " " + TEXT + "\n" + TEXT).encode(), 3),
    ("record separators.json", f"\x1e{TEXT}\n\x1e{TEXT}\n".encode(), 2),
    ("carriage returns alone.json", PRETTY.replace("\n", "\r").encode(), 1),
    ("windows.json", PRETTY.replace("\n", "\r\n").encode(), 1),
    ("a page.json", json.dumps({"data": [RECORD, RECORD], "has_more": False}).encode(), 2),
    ("marked.json", TEXT.encode("utf-8-sig"), 1),
    ("utf-16.jsonl", f"{TEXT}\n{TEXT}".encode("utf-16"), 2),
    ("utf-32.json", TEXT.encode("utf-32"), 1),
    ("gzip", gzip.compress(TEXT.encode()), 1),
    ("bzip2", bz2.compress(TEXT.encode()), 1),
    ("xz", lzma.compress(TEXT.encode()), 1),
    ("packed utf-16", gzip.compress(TEXT.encode("utf-16")), 1),
    ("an archive", pack(("a.json", TEXT), ("b/c.jsonl", f"{TEXT}\n{TEXT}"), ("b/.hidden", "x")), 3),
]


@pytest.mark.parametrize(("name", "data", "count"), FILES, ids=[name for name, _, _ in FILES])
def test_a_file_is_read_as_it_is(tmp_path: Path, name: str, data: bytes, count: int) -> None:
    (tmp_path / name).write_bytes(data)
    assert read(tmp_path / name) == [RECORD] * count


def test_a_folder_is_the_files_in_it(tmp_path: Path) -> None:
    for name in ("b/2.json", "a.json", "b/.hidden/3.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(TEXT, "utf-8")
    places = [record.place.source for record in scan_records(tmp_path, limits=PLAIN)]
    assert places == [str(tmp_path / "a.json"), str(tmp_path / "b/2.json")]


def test_a_url_is_read_through_fsspec(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "a.json").write_text(TEXT, "utf-8")
    assert read(Path(f"file:/{tmp_path}/a.json")) == [RECORD]  # as a shell's argument becomes a path


def test_an_encoding_is_named_and_never_guessed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(TEXT.encode("latin-1"))
    assert read(tmp_path / "f", Layout(encoding="latin-1")) == [RECORD]
    assert read(tmp_path / "f")[0].startswith("! ")


TABLES: list[tuple[str, str, dict[str, str], list[Any]]] = [
    (
        "a.csv",
        'id,prompt,answer,topic\n1,"Wie, was?",Gut,x\n2,Hi,"Hal\nlo",\n',
        {},
        [
            {"messages": [["user", "Wie, was?"], ["assistant", "Gut"]], "id": "1", "topic": "x"},
            {"messages": [["user", "Hi"], ["assistant", "Hal\nlo"]], "id": "2"},
        ],
    ),
    (
        "a.tsv",
        "frage\tantwort\nHi\tHallo\n",
        {"frage": "question", "antwort": "answer"},
        [{"messages": [["user", "Hi"], ["assistant", "Hallo"]]}],
    ),
    (
        "a.csv",
        'messages;id\n"[{""role"": ""user"", ""content"": ""Hi""}]";1\n',
        {},
        [{"messages": [["user", "Hi"]], "id": "1"}],
    ),
    (
        "a.csv",
        "question,answer\na,b,c\nd,e\n",
        {},
        ["! the document: 3 cells", {"messages": [["user", "d"], ["assistant", "e"]]}],
    ),
]


@pytest.mark.parametrize(("name", "text", "columns", "wanted"), TABLES)
def test_rows_are_records(tmp_path: Path, name: str, text: str, columns: dict[str, str], wanted: list[Any]) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    found = read(tmp_path / name, Layout(columns=columns))
    for one, should in zip(found, wanted, strict=True):
        if isinstance(should, str):
            assert one.startswith(should)
        else:
            assert one | {"messages": [[m["role"], m["content"]] for m in one["messages"]]} == should


CHUNKS = [
    {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
    {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]
MESSAGE = [
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"x":'}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
]
BLOCK = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
SAID = {"id": "m", "type": "message", "role": "assistant"}
STREAMS: list[tuple[str, list[Any], list[Any]]] = [
    ("chunks", [*CHUNKS, "[DONE]", *CHUNKS, "[DONE]"], [{"chunks": CHUNKS}, {"chunks": CHUNKS}]),
    (
        "a message",
        [*MESSAGE, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}],
        [SAID | {"stop_reason": "tool_use", "content": [BLOCK]}],
    ),
    ("a message that breaks off", MESSAGE, [SAID | {"stop_reason": "unfinished", "content": [BLOCK]}]),
    (
        "a response",
        [{"type": "response.created", "response": {}}, {"type": "response.completed", "response": {"output": []}}],
        [{"output": []}],
    ),
    (
        "candidates",
        [
            {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
            {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]},
        ],
        [
            {
                "candidates": [
                    {"content": {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]}, "finishReason": "STOP"}
                ]
            }
        ],
    ),
]


@pytest.mark.parametrize(("events", "wanted"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
def test_a_stream_of_events_is_the_reply_it_builds(tmp_path: Path, events: list[Any], wanted: list[Any]) -> None:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    (tmp_path / "f").write_text("".join(f"event: x\ndata: {line}\n\n" for line in lines), "utf-8")
    assert read(tmp_path / "f") == wanted


ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Rain?"}]}]
CALLED = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "rain", "arguments": {"city": "Oslo"}}]}
]
TAGS = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": json.dumps(ASKED),
    "gen_ai.output.messages": json.dumps(CALLED),
}
RAN = {"gen_ai.tool.name": "rain", "gen_ai.tool.call.id": "c", "gen_ai.tool.call.result": "wet"}
TALK = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "Yes."}]
RUN = {"epoch": 1, "messages": TALK}
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rain?"}]}
CLAUDE = [{"type": "user", "sessionId": name, "uuid": name, "message": TALK[0]} for name in ("a", "a2", "b")]


def jaeger(number: int, name: str, tags: dict[str, Any]) -> dict[str, Any]:
    listed = [{"key": key, "type": "string", "value": value} for key, value in tags.items()]
    times = {"startTime": 1_780_000_000_000_000 + number, "duration": 1, "processID": "p"}
    return {"traceID": "a", "spanID": str(number), "operationName": name, "references": [], "tags": listed} | times


def zipkin(number: int, name: str, tags: dict[str, Any]) -> dict[str, Any]:
    return {"traceId": "a", "id": str(number), "name": name, "timestamp": 1_780_000_000_000_000 + number, "tags": tags}


SPANS = [
    {"traceId": "a", "spanId": str(number), "name": name, "startTimeUnixNano": str(number), "attributes": tags}
    for number, (name, tags) in enumerate([("chat", TAGS), ("execute_tool", RAN)], 1)
]
SCOPES = [{"scopeSpans": [{"spans": SPANS}]}]
SEVERAL: list[tuple[str, Any, list[str]]] = [
    ("Tempo", {"batches": SCOPES}, ["a"]),
    ("Tempo's second API", {"trace": {"resourceSpans": SCOPES}, "metrics": {}}, ["a"]),
    ("AgentCore", {"evaluationLevel": "SESSION", "evaluationInput": {"sessionSpans": SPANS}}, ["a"]),
    (
        "an Inspect log",
        {"eval": {"task": "t"}, "samples": [{"id": 1, **RUN}, {"id": "b", **RUN}]},
        ["1-epoch-1", "b-epoch-1"],
    ),
    (
        "results of tau2-bench",
        {
            "tasks": [{"id": "7"}],
            "simulations": [
                {"task_id": "7", "trial": n, "termination_reason": "user_stop", "messages": TALK} for n in (0, 1)
            ],
        },
        ["task-7-trial-0", "task-7-trial-1"],
    ),
    (
        "Jaeger",
        {
            "data": [
                {
                    "traceID": "a",
                    "processes": {"p": {}},
                    "spans": [jaeger(1, "chat", TAGS), jaeger(2, "execute_tool", RAN)],
                }
            ]
        },
        ["a"],
    ),
    ("Zipkin", [zipkin(1, "chat", TAGS), zipkin(2, "execute_tool", RAN)], ["a"]),
    (
        "lines of two sessions",
        "\n".join(json.dumps(line | {"sessionId": line["sessionId"][0]}) for line in CLAUDE),
        ["a", "b"],
    ),
    (
        "a rollout",
        "\n".join(
            json.dumps({"timestamp": "t", **line})
            for line in ({"type": "session_meta", "payload": {"id": "r"}}, {"type": "response_item", "payload": ITEM})
        ),
        ["r"],
    ),
]


@pytest.mark.parametrize(("document", "ids"), [row[1:] for row in SEVERAL], ids=[row[0] for row in SEVERAL])
def test_a_document_is_as_many_traces_as_it_holds(tmp_path: Path, document: Any, ids: list[str]) -> None:
    (tmp_path / "f").write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    records = find_traces(scan_records(tmp_path / "f", limits=PLAIN))
    found: list[str | None] = []
    for record in group_spans(records, PLAIN, left_out=Counter(), named=None):
        assert isinstance(record, TraceRecord)
        trace = read_trace(read_request(build_body(record, named=None, guessed=Counter())).trace)
        assert trace.messages[0].text == "Rain?"
        found.append(trace.id)
    assert found == ids
