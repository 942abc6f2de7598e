"""A trace written in our own form reads as the same trace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.intake.writing import write_record
from tests.intake.records import CASES, load


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{name}: {case['name']}") for name, case in CASES])
def test_what_is_written_reads_as_the_same(case: dict[str, Any]) -> None:
    trace = load(case["input"])
    again = load(json.loads(json.dumps(write_record(trace))))
    assert again.messages == trace.messages
    assert again.tools == trace.tools
    assert again.state == trace.state
    assert again.offers == trace.offers
    made = [step for step in trace.steps if step.call.captured]
    same = [again.steps[step.index] for step in made]
    assert [(step.call.name, step.call.id, step.call.arguments, step.result) for step in same] == [
        (step.call.name, step.call.id, step.call.arguments, step.result) for step in made
    ]
    assert [(step.turn, step.message) for step in again.steps] == [(step.turn, step.message) for step in trace.steps]
