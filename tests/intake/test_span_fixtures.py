"""Exports of real instrumentations read like the run they record: calls, results, errors, answer and tools."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from service.core.trace import Step, Trace
from tests.intake.records import load

DATA = Path(__file__).parents[1] / "data" / "formats" / "spans"
FIXTURES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("*.json"))}

UNREAD = {"openai_v2": {"text", "call"}, "agents_openllmetry": {"text", "call"}}
"""Exports that leave out what the model said: it is named."""


def read(export: Any) -> Trace:
    """Read the trace of the run; some instrumentations put the creation of the agent into a trace of its own."""
    traces: dict[str, list[Any]] = defaultdict(list)
    for span in export["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        traces[span["traceId"]].append(span)
    return load({"format": "spans", "spans": max(traces.values(), key=len)})


def spell(content: Any) -> Any:
    """Return a result as a value if an exporter wrote it as Python."""
    if isinstance(content, str) and content.startswith(("{", "'", '"')):
        return spell(ast.literal_eval(content))
    return content


def check_step(step: Step, call: Any, lacks: list[str]) -> None:
    assert step.call.name == call["name"]
    assert step.call.captured == ("arguments" not in lacks)
    if "arguments" not in lacks:
        assert step.call.arguments == call["arguments"]
    if "ids" not in lacks:
        assert step.call.id == call["id"]
    if step.result is None:
        assert "results" in lacks
        return
    assert step.result.is_error == (call["is_error"] and "errors" not in lacks)
    if call["is_error"]:
        assert call["result"] in step.result.content
    else:
        assert spell(step.result.content) == call["result"]


@pytest.mark.parametrize("name", FIXTURES)
def test_an_export_reads_as_the_run_went(name: str) -> None:
    fixture = FIXTURES[name]
    run, trace = fixture["run"], read(fixture["export"])
    lacks = run["lacks"]
    calls = [] if "calls" in lacks else run["calls"]
    assert [step.call.name for step in trace.steps] == [call["name"] for call in calls]
    for step, call in zip(trace.steps, calls, strict=True):
        check_step(step, call, lacks)
    assert run["answer"] in (trace.answer or "") if "answer" not in lacks else trace.answer is None
    tools = None if "tools" in lacks else [tool.name for tool in trace.tools or () if tool.parameters is not None]
    assert tools is None or tools[:3] == run["tools"]
    assert ("tools" in lacks) == (trace.tools is None)
    assert {part.kind for part in trace.unread} == UNREAD.get(name, set())


@pytest.mark.parametrize("name", sorted(FIXTURES.keys() - {"autogen_native", "dspy_openinference", "openai_v2"}))
def test_parallel_calls_are_of_one_message(name: str) -> None:
    first, second, third = read(FIXTURES[name]["export"]).steps[:3]
    assert first.message == second.message < third.message
    assert first.turn == third.turn == 1


def test_tokens_and_times_of_a_run_add_up() -> None:
    trace = read(FIXTURES["pydantic_ai_v6"]["export"])
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (400, 90)
    assert trace.usage.cost_usd == pytest.approx(1.14e-4)
    known = [step.usage for step in trace.steps if step.usage]
    assert [usage.input_tokens for usage in known] == [100, None, 140]
    assert all(usage.duration_s and 0 < usage.duration_s < trace.usage.duration_s for usage in known)  # pyright: ignore[reportOperatorIssue]


def test_every_fixture_names_its_packages() -> None:
    for fixture in FIXTURES.values():
        assert (fixture.get("from") == "documentation") == (fixture["packages"].keys() == {"opentelemetry-sdk"})
