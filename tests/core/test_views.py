"""What a judge is shown: a table, nothing of what came later, and beginnings that prompts of a batch share."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from pydantic import TypeAdapter

from service import plan
from service.asking.judging import draw_nonces
from service.core.grounding.origins import Grounded
from service.core.judging.focus import PartName, render_part
from service.core.judging.judges import Ask, Judge
from service.core.judging.questions import build_question
from service.core.trace import Trace
from tests.core.strategies import traces
from tests.tables import DATA, read_yaml

TABLE: dict[str, Any] = read_yaml(DATA / "judges" / "views.yaml")
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


# Prompts of one rubric over a batch begin alike, so that providers and local servers read what they have cached.

STARTER = Path(__file__).parents[2] / "calibration" / "labels" / "starter.jsonl"
SHARED_AT_LEAST = 0.6


def measure_shared(texts: list[str]) -> float:
    """The share of all prompts but the first that an earlier one begins with too."""
    ordered = sorted(texts)  # the longest common beginning is that with a neighbour
    alike = [
        takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)) for one, other in pairwise(ordered)
    ]
    shared = sum(1 for pairs in alike for _ in pairs)
    return shared / (sum(map(len, texts)) - len(ordered[0]))


def test_most_of_a_batch_is_a_beginning_that_was_sent_before() -> None:
    by_judge = defaultdict[str, list[str]](list)
    for line in STARTER.read_text("utf-8").splitlines():
        made = plan({"rubric": "four_step", "trace": json.loads(line)["trace"]})
        for ask in made.asks:
            prompt = build_question(ask, made.trace).prompt("m", *draw_nonces(""))
            by_judge[ask.judge.id].append("\n".join(turn.text for turn in prompt.turns))
    shares = {judge: measure_shared(texts) for judge, texts in by_judge.items() if len(texts) > 1}
    assert len(shares) == 4, "the batch asks every judge of the rubric"
    assert min(shares.values()) >= SHARED_AT_LEAST, shares
