"""What a judge is shown: the table `tests/data/judges/views.yaml`, and that nothing later leaks into a step's conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from pydantic import TypeAdapter

from service import plan
from service.core.grounding.origins import Grounded
from service.core.judging.focus import PartName, render_part
from service.core.judging.judges import Ask, Judge
from service.core.trace import Trace
from service.reading.packaged_files import read_yaml
from tests.core.strategies import traces

FILE = Path(__file__).parents[1] / "data" / "judges" / "views.yaml"
TABLE: dict[str, Any] = read_yaml(FILE.read_text("utf-8"), source=FILE.name)  # type: ignore[assignment]
JUDGE = Judge.model_validate({"id": "j", "level": "step", "question": "Is it?", "scale": {"yes": 1, "no": 0}})
GROUNDED = TypeAdapter(tuple[Grounded, ...])
VIEWS: tuple[PartName, ...] = get_args(PartName)


def read(trace: dict[str, Any]) -> Trace:
    return plan({"trace": {"format": "callgrade", **trace}, "judges": "off"}).trace


TRACES = {name: read(trace) for name, trace in TABLE["traces"].items()}


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_a_view_at_a_moment(case: dict[str, Any]) -> None:
    at = {name: GROUNDED.validate_python(value) if name == "grounding" else value for name, value in case["at"].items()}
    found = render_part(case["show"], TRACES[case.get("trace", "shop")], Ask("c", JUDGE, **at))
    assert found == case["want"]
    assert json.dumps(found) == json.dumps(case["want"])  # the order of keys too


def test_every_view_is_in_the_table() -> None:
    assert {case["show"] for case in TABLE["cases"]} == set(VIEWS)


def cut_before(record: dict[str, Any], step: int) -> dict[str, Any]:
    """The same up to the call of that number, which is the last event and has returned nothing."""
    places = [n for n, event in enumerate(record["events"]) if "call" in event]
    kept = record["events"][: places[step] + 1]
    return {**record, "events": [*kept[:-1], {"call": kept[-1]["call"]}]}


@given(record=traces(least=1))
def test_a_step_sees_what_it_would_see_if_the_trace_ended_with_it(record: dict[str, Any]) -> None:
    whole = read(record)
    for step in whole.steps:
        ended = read(cut_before(record, step.index))
        for name in ("conversation", "call", "calls", "tool", "tools", "near_misses"):
            assert render_part(name, whole, Ask("c", JUDGE, step.index)) == render_part(
                name, ended, Ask("c", JUDGE, step.index)
            )
