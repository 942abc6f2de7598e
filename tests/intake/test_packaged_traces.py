"""Every real record packaged with the project is read, and nothing of it is lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from service.intake.reading import TraceInput, guess_format, read_gold, read_trace

pytestmark = pytest.mark.shared_data
INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_every_tau_run(shared_data: Path) -> None:
    tools = json.loads((shared_data / "tau_airline" / "tools.json").read_text("utf-8"))
    runs = calls = results = errors = 0
    for row in rows(shared_data / "tau_airline" / "runs.jsonl.gz"):
        assert guess_format(row) == "tau"
        trace = read_trace(INPUT.validate_python(row | {"format": "tau", "tools": tools}))
        gold = read_gold(row | {"format": "tau"})  # type: ignore[arg-type]
        assert gold is not None
        assert gold["actions"] == row["gold_actions"]
        assert trace.state is not None
        assert (trace.state.initial, trace.state.final) == (row["initial"], row["final"])
        assert trace.tools is not None
        assert len(trace.tools) == 14
        made = [call for message in row["messages"] for call in message.get("tool_calls") or ()]
        assert [step.call.id for step in trace.steps] == [call["id"] for call in made]
        assert all(step.call.arguments is not None for step in trace.steps)
        runs += 1
        calls += len(trace.steps)
        results += sum(step.result is not None for step in trace.steps)
        errors += sum(step.result is not None and step.result.is_error for step in trace.steps)
    assert (runs, calls, results, errors) == (100, 621, 621, 63)
