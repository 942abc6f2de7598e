"""Every real record packaged with the project is read, and nothing of it is lost."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from service.intake import TraceInput, guess_format, read_gold, read_trace
from service.intake.build import build_tool_call

pytestmark = pytest.mark.shared_data
INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_every_bfcl_output(shared_data: Path) -> None:
    questions = {row["id"]: row for row in rows(shared_data / "bfcl" / "questions.jsonl.gz")}
    read = unparsable = answered = 0
    for row in rows(shared_data / "bfcl" / "rows.jsonl.gz"):
        record = questions[row["id"]] | row
        assert guess_format(record) == "bfcl"
        trace = read_trace(INPUT.validate_python(record | {"format": "bfcl"}))
        made = row["calls"] if row["calls"] is not None else row["result"] if isinstance(row["result"], list) else []
        assert [step.call.name for step in trace.steps] == [name for call in made for name in call]
        assert trace.tools is not None
        assert len(trace.tools) == len(record["functions"])
        assert trace.turns == 1
        read += 1
        unparsable += any(step.call.problem is not None for step in trace.steps)
        answered += trace.answer is not None
    assert (read, unparsable, answered) == (7440, 11, 1056)


def test_bfcl_gold_names_functions_as_the_model_saw_them(shared_data: Path) -> None:
    absent = 0
    for row in rows(shared_data / "bfcl" / "questions.jsonl.gz"):
        record = row | {"format": "bfcl", "calls": [], "underscore_to_dot": True}
        gold = read_gold(INPUT.validate_python(record))
        assert gold is not None
        answers: Any = gold["possible_answer"]
        absent += answers is None
        assert all("." not in name for answer in answers or () for name in answer)
    assert absent == 240


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


# Valid JSON that we refuse, each for a reason that the reader of text names.
REFUSED = {
    "y_object_duplicated_key.json",
    "y_object_duplicated_key_and_value.json",
    "y_object_escaped_null_in_key.json",
    "y_string_null_escape.json",
}


def test_the_json_test_suite(shared_data: Path) -> None:
    seen = dict.fromkeys("yni", 0)
    for row in rows(shared_data / "hostile" / "json_test_suite.jsonl.gz"):
        text = base64.b64decode(row["content_base64"]).decode("utf-8", "surrogateescape")
        call = build_tool_call(None, "f", text)
        seen[row["expected"]] += 1
        if row["expected"] == "n" and text.strip():
            assert call.problem is not None, row["name"]
        if row["expected"] == "y":
            assert ((call.problem or "").startswith(("not valid", "a NUL"))) == (row["name"] in REFUSED), row["name"]
    assert seen == {"y": 95, "n": 188, "i": 35}
