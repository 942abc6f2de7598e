"""Spans in files: the same traces in whatever form, order and split they come, in bounded memory."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import TypeAdapter

from service.core.trace import Trace
from service.intake.reading import TraceInput, read_trace
from service.intake.spans.exports import read_export
from service.reading.places import BadRecord, TraceRecord
from service.reading.span_files import NO_CONTENT, group_spans
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records

DATA = Path(__file__).parents[1] / "data" / "formats" / "spans"
FORMS = sorted((DATA / "forms").iterdir())
INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)
LIMITS = Limits()
FOREIGN = {"name": "GET /", "traceId": "f" * 32, "spanId": "1" * 16, "attributes": []}


def read_spans(name: str) -> list[Any]:
    export = json.loads((DATA / f"{name}.json").read_text("utf-8"))["export"]
    return export["resourceSpans"][0]["scopeSpans"][0]["spans"]


def scan(*files: bytes, limits: Limits = LIMITS, left_out: Counter[str] | None = None) -> list[TraceRecord | BadRecord]:
    read = [scan_records(BytesIO(data), limits=LIMITS, name=f"file {n}") for n, data in enumerate(files)]
    return list(group_spans(chain.from_iterable(read), limits, left_out=Counter() if left_out is None else left_out))


def read(record: TraceRecord | BadRecord) -> Trace:
    assert isinstance(record, TraceRecord), record
    return read_trace(INPUT.validate_python({"format": "spans", **record.value}))


def outline(trace: Trace) -> Any:
    """What was read, without times, which the SDK's JSON rounds."""
    steps = [(step.turn, step.message, step.call, step.result) for step in trace.steps]
    return trace.id, trace.tools, trace.messages, steps, trace.answer, trace.unread


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_run_is_the_same_trace_in_every_form_of_export(form: Path, *, packed: bool) -> None:
    data = form.read_bytes()
    (record,) = scan(gzip.compress(data) if packed else data)
    (wanted,) = scan((DATA / "forms" / "collector.jsonl").read_bytes())
    assert outline(read(record)) == outline(read(wanted))
    assert [step.call.name for step in read(record).steps] == ["get_order", "get_weather", "refund_order"]


def test_protobuf_keeps_what_its_exporter_dropped() -> None:
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(name="chat", span_id=b"12345678", dropped_attributes_count=3)
    )
    span.attributes.add(key="share").value.double_value = float("nan")
    body: Any = read_export(request.SerializeToString())
    (written,) = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (written["spanId"], written["droppedAttributesCount"]) == (b"12345678".hex(), 3)
    assert written["attributes"] == [{"key": "share", "value": {"doubleValue": "NaN"}}]


RUNS = ("genai_1_28", "openai_openllmetry", "agents_openllmetry", "strands_native")


def write_files(spans: list[Any], cuts: list[tuple[str, int]], files: int) -> list[bytes]:
    """The spans in pieces, each an export, a list or lines of their own, dealt to files."""
    parts: list[list[bytes]] = [[] for _ in range(files)]
    rest = list(spans)
    for n, (form, size) in enumerate([*cuts, ("export", len(spans))]):
        piece, rest = rest[:size], rest[size:]
        if form == "export" and piece:
            parts[n % files].append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": piece}]}]}).encode())
        elif form == "list" and piece:
            parts[n % files].append(json.dumps({"spans": piece}).encode())
        else:
            parts[n % files] += [json.dumps(span).encode() for span in piece]
    return [b"\n".join(part) + b"\n" for part in parts if part]


@given(
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.tuples(st.sampled_from(["export", "list", "lines"]), st.integers(1, 9)), max_size=6),
    files=st.integers(1, 3),
)
def test_order_and_split_change_no_trace(seed: int, cuts: list[tuple[str, int]], files: int) -> None:
    spans = [span for name in RUNS for span in read_spans(name)]
    wanted = {read(record).id: read(record) for record in scan(*write_files(spans, [], 1))}
    assert len(wanted) == len(RUNS)
    random.Random(seed).shuffle(spans)  # noqa: S311
    found = {read(record).id: read(record) for record in scan(*write_files(spans, cuts, files))}
    assert {key: strip(trace) for key, trace in found.items()} == {key: strip(trace) for key, trace in wanted.items()}


def strip(trace: Trace) -> Any:
    unread = Counter((part.kind, part.reason, part.turn) for part in trace.unread)
    return (*outline(trace)[:-1], [step.usage for step in trace.steps], trace.usage, unread)


def test_traces_of_other_things_are_left_out_and_counted() -> None:
    left_out: Counter[str] = Counter()
    spans = [FOREIGN, *read_spans("genai_1_28"), {**FOREIGN, "traceId": "e" * 32}]
    assert len(scan(*write_files(spans, [], 1), left_out=left_out)) == 1
    assert left_out == {NO_CONTENT: 2}
    (alone,) = scan(json.dumps(FOREIGN).encode() + b"\n")
    assert isinstance(alone, BadRecord)
    assert "none of 1 trace" in alone.error.problems[0].message


def test_a_trace_over_the_limit_is_refused_and_the_others_are_read() -> None:
    spans = [*read_spans("genai_1_28"), *read_spans("agents_openllmetry")]
    sizes = [len(json.dumps(read_spans(name))) for name in ("agents_openllmetry", "genai_1_28")]
    found = scan(*write_files(spans, [("lines", 99)], 1), limits=Limits(max_bytes=sum(sizes) // 2))
    assert Counter(type(record) for record in found) == {TraceRecord: 1, BadRecord: 1}


def test_a_line_of_many_spans_may_be_longer_than_a_request() -> None:
    (data,) = write_files(read_spans("genai_1_28"), [], 1)
    short = Limits(max_bytes=len(data) // 2)
    found = list(scan_records(BytesIO(data.replace(b": ", b":")), limits=short))
    assert isinstance(found[0], TraceRecord)


def damage(data: bytes) -> Iterator[bytes]:
    yield data[:-10]
    yield data[:3]
    yield b"\xff\xff\xff\xff" + data[4:]
    yield data[:9_000] + b"\xff" * 40 + data[9_040:]


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("name", ["request.pb", "collector.pb"])
def test_damaged_protobuf_is_told_and_nothing_breaks(name: str, n: int) -> None:
    found = scan(list(damage((DATA / "forms" / name).read_bytes()))[n])
    bad = [record for record in found if isinstance(record, BadRecord)]
    assert bad, found


def test_values_in_values_without_end_are_refused() -> None:
    value = b""
    for _ in range(200):
        value = b"\x2a" + varint(len(value) + 1 + len(varint(len(value)))) + b"\x0a" + varint(len(value)) + value
    attribute = b"\x0a\x01a\x12" + varint(len(value)) + value
    data = b"\x4a" + varint(len(attribute)) + attribute
    for tag in (b"\x12", b"\x12", b"\x0a"):
        data = tag + varint(len(data)) + data
    (found,) = scan(data)
    assert isinstance(found, BadRecord)
    assert "nested too deep" in found.error.problems[0].message


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def hostile_spans(count: int) -> Iterable[Any]:
    """Copies of a span, spans of one id that differ, and parents in a circle."""
    model = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
    for n in range(count):
        attributes = [model, {"key": "llm.model_name", "value": {"stringValue": str(n % 3)}}]
        ring = {"spanId": f"{n % 97:016x}", "parentSpanId": f"{(n + 1) % 97:016x}"}
        yield {"name": "chat", "traceId": "a" * 32, **ring, "startTimeUnixNano": str(n), "attributes": attributes}


def test_circles_and_copies_take_no_more_than_their_number() -> None:
    (record,) = scan(*write_files(list(hostile_spans(5_000)), [], 1))
    trace = read(record)
    assert trace.unread
    again = [*hostile_spans(50), *hostile_spans(50)]
    assert len(read(scan(*write_files(again, [], 1))[0]).unread) == len(
        read(scan(*write_files(again[:50], [], 1))[0]).unread
    )


MEASURE = """
import resource, sys
from collections import Counter
from pathlib import Path
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before, traces = peak(), 0
for record in group_spans(scan_records(Path(sys.argv[1]), limits=Limits()), Limits(), left_out=Counter()):
    traces += 1
print(traces, peak() - before)
"""


def measure(tmp_path: Path, size: int, batch: int = 50) -> tuple[int, int, int]:
    """Writes so many bytes of lines with spans of many traces mixed; gives traces written, read, and MB that it took."""
    spans, path, traces = read_spans("genai_1_28"), tmp_path / "spans.jsonl", 0
    mixed: list[Any] = []
    shuffle = random.Random(1)  # noqa: S311
    with path.open("w") as file:
        while file.tell() < size:
            while len(mixed) < 3_000:
                traces += 1
                mixed += [{**span, "traceId": f"{traces:032x}"} for span in spans]
            shuffle.shuffle(mixed)
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": mixed[:batch]}]}]}) + "\n")
            del mixed[:batch]
        file.writelines(json.dumps(span) + "\n" for span in mixed)
    found = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, check=True, text=True)
    read_traces, took = found.stdout.split()
    return traces, int(read_traces), int(took)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    traces, found, took = measure(tmp_path, 20_000_000)
    assert found == traces
    assert took < 32
