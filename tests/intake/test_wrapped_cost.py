"""Reading logs of many exchanges takes work in proportion. Function calls are counted, not seconds."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from service.intake.reading import read_trace
from tests.intake.records import INPUT


def call(number: int) -> Any:
    return {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": number}}}]}


def generations(count: int) -> Any:
    """Build replies one by one, and one exchange whose input has them all."""
    entries = [{"type": "GENERATION", "input": [], "output": call(number)} for number in range(count)]
    done = {"role": "model", "parts": [{"text": "Done"}]}
    whole = {"type": "GENERATION", "input": [call(number) for number in range(count)], "output": done}
    return {"format": "langfuse", "observations": [*entries, whole]}


def runs(count: int) -> Any:
    """Build steps of a chain that each repeat a state, and a model's run that has all calls."""
    calls = [{"id": "call_0", "name": "f", "args": {"x": number}} for number in range(count)]
    messages = [{"type": "ai", "content": "", "tool_calls": [one]} for one in calls]
    model = {"run_type": "llm", "inputs": {"messages": messages}, "outputs": {"generations": [{"text": "Done"}]}}
    return {"format": "langsmith", "runs": [model, *[{"run_type": "chain", "inputs": {"last": one}} for one in calls]]}


def count_work(record: Any) -> int:
    made = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    given = INPUT.validate_python(record)
    sys.setprofile(profile)
    try:
        trace = read_trace(given)
    finally:
        sys.setprofile(None)
    assert not trace.unread
    return made


@pytest.mark.parametrize("build", [generations, runs])
def test_twice_the_exchanges_are_twice_the_work(build: Any) -> None:
    count_work(build(2))  # what is made once
    assert count_work(build(120)) < 2.2 * count_work(build(60))
