"""What the runtime refuses has a rate of its own."""

from __future__ import annotations

from typing import Any

import pytest

from service import Report, score
from service.reporting.summaries import summarize_reports

TOOL = {"name": "pay", "parameters": {"type": "object", "properties": {"cents": {"type": "integer"}}}}


def report(*cents: Any, schema: bool = True) -> Report:
    """The report of a trace that should pay 5 cents as often as it pays."""
    events = [{"user": "Pay 5 cents."}, *[{"call": {"name": "pay", "arguments": {"cents": one}}} for one in cents]]
    trace = {"format": "callgrade", "events": events, **({"tools": [TOOL]} if schema else {})}
    calls = [{"tool": "pay", "args": {"cents": 5}}] * len(cents)
    return score({"trace": trace, "expected": {"calls": calls}, "judges": "off"})


def test_refused_calls_lower_what_was_attempted_and_not_what_was_executed():
    calls = summarize_reports([report(5, 5), report(5, "5"), report(6)]).calls
    assert calls is not None
    assert (calls.calls, calls.refused.value, calls.executed.value) == (5, pytest.approx(1 / 5), pytest.approx(3 / 4))
    assert calls.attempted.value == pytest.approx(3 / 5)


def test_without_a_schema_nothing_is_refused_for_all_one_knows():
    calls = summarize_reports([report("5", schema=False)]).calls
    assert calls is not None
    assert (calls.refused.value, calls.executed.n) == (None, 1)


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ("calls.refused_rate <= 50%", True),
        ("calls.refused_rate <= 10%", False),
        ("calls.executed_pass_rate == 1", True),
        ("calls.pass_rate >= 0.6", False),
    ],
)
def test_the_rates_can_be_asserted(assertion: str, *, passed: bool):
    gate = summarize_reports([report(5, "5")], assertions=[assertion]).gate
    assert gate is not None
    assert gate.passed == passed
