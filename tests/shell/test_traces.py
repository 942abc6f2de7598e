"""Files of traces: what is read from each, where it stands, and what becomes of the rest when something is broken."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.reading import trace_files as traces
from service.reading.places import BadRecord, TraceRecord
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records
from tests.tables import DATA, named, read_yaml

TABLES = read_yaml(DATA / "reading" / "trace_files.yaml")

SMALL = Limits(max_bytes=40)
PLAIN = Limits()


def told(data: bytes, limits: Limits = PLAIN) -> list[str]:
    """Each item in a line: its place, then the record as JSON or what is wrong."""
    return [told_one(item) for item in scan_records(io.BytesIO(data), limits=limits, name="f")]


def told_one(item: TraceRecord | BadRecord) -> str:
    where = f"{item.place}{item.place.pointer}"
    return (
        f"{where} {json.dumps(item.value) if isinstance(item, TraceRecord) else f'! {item.error.problems[0].message}'}"
    )


@pytest.mark.parametrize(("text", "places"), named(TABLES["whole"]))
def test_every_layout_gives_the_same_records(text: str, places: list[str]) -> None:
    data = text.encode()
    wanted = [f'{place} {{"a": 1}}' for place in places]
    assert told(data) == wanted
    assert told(gzip.compress(data)) == wanted


NOT_UTF8 = [
    ("UTF-16", '{"a": 1}'.encode("utf-16"), ["f:1 {"]),
    ("UTF-16 that is torn", '{"a": 1}'.encode("utf-16")[:-1], ["f ! not in the encoding"]),
    ("not UTF-8", b'{"a": "\xff"}\n{"a": 1}\n', ["f:1 !", "f:2 {"]),
    ("not gzip after all", b"\x1f\x8bnothing of the kind", ["f ! the compressed data is damaged"]),
]


@pytest.mark.parametrize(("data", "wanted"), [*named(TABLES["broken"]), *named(NOT_UTF8)])
def test_what_is_broken_is_named_and_the_rest_is_read(data: str | bytes, wanted: list[str]) -> None:
    found = told(data.encode() if isinstance(data, str) else data)
    assert len(found) == len(wanted), found
    assert all(line.startswith(start) for line, start in zip(found, wanted, strict=True)), found


def test_gzip_that_ends_too_early_gives_what_came_before() -> None:
    noise = "".join(f'{{"a": "{n * n}"}}\n' for n in range(50_000)).encode()
    cut = gzip.compress(noise)[:-20]
    found = list(scan_records(io.BytesIO(cut), limits=PLAIN, name="f"))
    assert len(found) > 40_000
    assert all(isinstance(item, TraceRecord) for item in found[:-1])
    assert isinstance(found[-1], BadRecord)
    assert "ends too early" in str(found[-1].error)


LINE = b'{"a": "' + b"x" * 24 + b'"}'
LONG = b'{"a": "' + b"x" * 60 + b'"}'


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n"])
def test_a_line_over_the_limit_spoils_no_other(end: bytes) -> None:
    found = told(end.join([LONG, LINE, LONG, LINE]), SMALL)
    assert [line[:5] for line in found] == ["f:1 !", "f:2 {", "f:3 !", "f:4 {"]
    assert "more than 40 bytes" in found[0]


def test_a_line_of_exactly_the_limit_is_read() -> None:
    line = b'{"a": "' + b"x" * 31 + b'"}'
    assert len(line) == SMALL.max_bytes
    assert [item[:5] for item in told(line + b"\r\n" + line, SMALL)] == ["f:1 {", "f:2 {"]


def test_the_limit_holds_for_an_element_and_not_for_the_list() -> None:
    found = told(b"[" + b",".join([LINE, LINE, LONG, LINE]) + b"]", SMALL)
    assert [line[:7] for line in found] == ["f:1/0 {", "f:1/1 {", "f:1/2 !", "f:1/3 {"]


def test_objects_in_one_line_and_in_several_may_follow_one_another() -> None:
    record = {"a": [{"b": "}{"}, 1], "c": {}}
    line, pretty = json.dumps(record), json.dumps(record, indent=2)
    flat = json.dumps(record, indent=0)
    data = "\n".join([line, pretty, line, "", flat, '{"cut": [1,', line, '{"cut": "', pretty, line])
    found = told(data.encode())
    numbers = [1, 2, 11, 13, 22, 23, 24, 25, 34]
    assert [item.split()[0] for item in found] == [f"f:{number}" for number in numbers]
    assert [item.split()[1] == "!" for item in found] == [number in {22, 24} for number in numbers]


def test_a_list_is_read_piece_by_piece() -> None:
    record = {"a": "]" * 500, "b": ["x", {"y": '"'}]}
    data = json.dumps([record] * 2_000, indent=1).encode()
    read = io.BytesIO(data)
    records = scan_records(read, limits=PLAIN)
    first = next(records)
    assert isinstance(first, TraceRecord)
    assert read.tell() < len(data) / 4
    found = [first, *records]
    assert all(isinstance(item, TraceRecord) and item.value == record for item in found)
    assert [item.place.line for item in found[:3]] == [2, 11, 20]
    assert (len(found), found[-1].place.pointer) == (2_000, "/1999")


def test_a_page_may_be_as_large_as_a_document() -> None:
    page = json.dumps({"data": [json.loads(LINE)] * 3}).encode()
    assert [item[:5] for item in told(page, SMALL)] == ["f:1 {"]
    assert [item[:5] for item in told(page.replace(b"data", b"list"), SMALL)] == ["f:1 !"]


def test_a_document_or_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_DOCUMENT_BYTES", 2 * traces.CHUNK_BYTES)
    endless = b"x" * (3 * traces.CHUNK_BYTES)
    for start, limits in ((b"[", PLAIN), (b'{"a": [\n' + b"1,\n" * 50_000, PLAIN), (b"{", SMALL)):
        data = b'{"a": 1}\n' + start + endless + b'\n{"a": 1}' if limits is SMALL else start + endless
        found = list(scan_records(io.BytesIO(data), limits=limits))
        assert isinstance(found[-1], BadRecord)
        assert "more than 131072 bytes" in str(found[-1].error)
        assert sum(isinstance(item, TraceRecord) for item in found) == (limits is SMALL)


def test_a_stream_that_was_given_stays_open() -> None:
    for stream in (io.BytesIO(b'{"a": 1}'), io.BufferedReader(io.BytesIO(b'{"a": 1}'))):  # type: ignore[arg-type]
        assert len(list(scan_records(stream, limits=PLAIN))) == 1
        assert not stream.closed


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_what_cannot_be_opened_is_one_bad_record(tmp_path: Path, name: str) -> None:
    (found,) = scan_records(tmp_path / name, limits=PLAIN)
    assert isinstance(found, BadRecord)
    assert found.place.line is None
    assert "cannot be read" in str(found.error) or "there is no file in it" in str(found.error)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
objects = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**20), 10**20) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('[]{}",\\'), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)  # fmt: skip
LAYOUTS = {
    "lines": lambda values: "\n".join(map(json.dumps, values)),
    "list": json.dumps,
    "indented list": lambda values: json.dumps(values, indent=1, ensure_ascii=False),
    "spaced lines": lambda values: "\r\n\r\n".join(json.dumps(v, ensure_ascii=False) for v in values) + "\r\n",
}


@given(st.lists(objects, min_size=1, max_size=5), st.sampled_from(sorted(LAYOUTS)), st.booleans())
def test_what_is_written_is_read(values: list[dict[str, Any]], layout: str, packed: bool) -> None:
    data = LAYOUTS[layout](values).encode()
    found = list(scan_records(io.BytesIO(gzip.compress(data) if packed else data), limits=PLAIN))
    assert [item.value for item in found if isinstance(item, TraceRecord)] == values
    assert len(found) == len(values)


@example(b"[0\r\x01")  # what is wrong with an element stands in a later line than its start
@given(st.binary(max_size=60) | st.text('{}[]",:\\1 \n\r', max_size=40).map(str.encode))
def test_no_content_raises_and_every_line_is_one_of_the_file(data: bytes) -> None:
    found = list(scan_records(io.BytesIO(data), limits=SMALL))
    assert found
    last = len(re.split(rb"\r\n|\r|\n", data))
    lines = [item.place.line for item in found if item.place.line is not None]
    assert lines == sorted(lines)
    assert all(1 <= line <= last for line in lines)
