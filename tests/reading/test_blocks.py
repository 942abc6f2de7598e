"""A file that is cut into blocks has the records that it has as a whole, at the same places."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from service.reading.blocks import list_blocks
from service.reading.places import PLAIN, BadRecord
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records

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
