"""What real libraries export of one conversation is read whole, whatever their format: `make interop` recorded it."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from service.reading.bare_traces import build_body
from service.reading.places import BadRecord
from service.reading.records import find_traces
from service.reading.request import read_request, read_request_trace
from service.reading.span_files import group_spans
from service.reading.trace_files import scan_records
from service.settings import Settings
from service.wiring import build_limits
from tests.tables import read_yaml

DATA = Path(__file__).parents[1] / "data" / "interop"
TABLE: dict[str, dict[str, Any]] = read_yaml(DATA / "table.yaml")
CALLS = [["get_order", {"order_id": "A-1001"}], ["get_order", {"order_id": "A-2002"}]]
ANSWER = "Order A-1001 was shipped with Northmail; there is no order A-2002."
LIMITS = build_limits(Settings())


def read_file(name: str) -> Any:
    """The one record of a file, as `callgrade score` finds it, or why it cannot be read."""
    records = find_traces(scan_records(DATA / name, limits=LIMITS))
    [record] = group_spans(records, LIMITS, left_out=Counter())
    return record


def test_every_recording_has_a_row_and_a_version() -> None:
    recorded = {path.name for path in DATA.iterdir()} - {"table.yaml", "versions.json"}
    assert recorded == TABLE.keys() == json.loads((DATA / "versions.json").read_text("utf-8")).keys()


@pytest.mark.parametrize("name", TABLE)
def test_a_recording_is_read_whole(name: str) -> None:
    row, record = TABLE[name], read_file(name)
    if "needs" in row and find_spec(row["needs"]) is None:
        assert isinstance(record, BadRecord)
        assert f"pip install {row['needs']}" in str(record.error)
        return
    request = read_request(build_body(record, named=None, guessed=Counter()))
    trace = read_request_trace(request)
    first, second = [step.result for step in trace.steps]
    assert request.trace["format"] == row["format"]
    assert [[step.call.name, step.call.arguments] for step in trace.steps] == CALLS
    assert first is not None
    assert "Northmail" in str(first.content)
    assert not first.is_error
    assert second is not None
    assert row.get("failure", "there is no order A-2002") in str(second.content)
    assert second.is_error == row.get("failed", True)
    assert trace.answer == row.get("answer", ANSWER)
    assert (trace.tools is not None) == row.get("tools", False)
    assert sorted([part.kind, part.path] for part in trace.unread) == row.get("unread", [])
