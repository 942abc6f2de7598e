"""What calls and cases took, as their traces say, and what a runtime refuses, in reports and summaries."""

from __future__ import annotations

from typing import Any

import pytest

import service
from service.core.report import Report
from service.reporting.summaries import summarize_reports

TOOL = {"name": "pay", "parameters": {"type": "object", "properties": {"cents": {"type": "integer"}}}}


def run(name: str, start: int, milliseconds: int) -> dict[str, Any]:
    times = {"start_time": start, "end_time": start + milliseconds * 10**6}
    return {"name": name, "attributes": {"tool.name": name, "input.value": "{}", "output.value": "1"}, **times}


def score(durations: list[int], tokens: int | None = None) -> Report:
    start = 1_700_000_000_000_000_000
    spans = [run("find-order", start + n * 10**9, duration) for n, duration in enumerate(durations)]
    messages = [{"role": "assistant", "content": "Done"}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages}
    reply = {"name": "chat", "start_time": start + 10**11, "end_time": start + 10**11 + 1, "attributes": attributes}
    if tokens is not None:
        attributes["gen_ai.usage.input_tokens"] = tokens
    return service.score({"trace": {"format": "spans", "spans": [*spans, reply]}, "judges": "off"})


REPORTS = [score([100, 200], 10), score([300], 30), score([400, 1000], 20)]
PLAIN = service.score(
    {"trace": {"format": "callgrade", "events": [{"user": "Hi"}, {"assistant": "Hi"}]}, "judges": "off"}
)


def pay(*cents: Any, schema: bool = True) -> Report:
    """The report of a trace that should pay 5 cents as often as it pays."""
    events = [{"user": "Pay 5 cents."}, *[{"call": {"name": "pay", "arguments": {"cents": one}}} for one in cents]]
    trace = {"format": "callgrade", "events": events, **({"tools": [TOOL]} if schema else {})}
    calls = [{"tool": "pay", "args": {"cents": 5}}] * len(cents)
    return service.score({"trace": trace, "expected": {"calls": calls}, "judges": "off"})


def test_refused_calls_lower_what_was_attempted_and_not_what_was_executed() -> None:
    calls = summarize_reports([pay(5, 5), pay(5, "5"), pay(6)]).calls
    assert calls is not None
    assert (calls.calls, calls.refused.value, calls.executed.value) == (5, pytest.approx(1 / 5), pytest.approx(3 / 4))
    assert calls.attempted.value == pytest.approx(3 / 5)
    unknown = summarize_reports([pay("5", schema=False)]).calls
    assert unknown is not None
    assert (unknown.refused.value, unknown.executed.n) == (None, 1)
