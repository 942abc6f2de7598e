"""The labelled set that comes with the project and what it is made of."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from service.calibration.labels import LabelledItem, LabelledSet, read_labels
from service.registry import Registry

STARTER = Path(__file__).parents[2] / "calibration" / "labels" / "starter.jsonl"


@pytest.fixture(scope="module")
def starter() -> LabelledSet:
    return read_labels(STARTER.read_text("utf-8").splitlines(), source=STARTER.name)


def called(item: LabelledItem) -> list[str]:
    messages = (item.trace or {})["messages"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return [call["function"]["name"] for call in calls]


def test_what_it_is_made_of(starter: LabelledSet) -> None:
    stages = {one.id: one.stage for one in Registry().find("four_step").criteria}
    assert all(stages[item.criterion] == item.step for item in starter.items)
    assert Counter(item.step for item in starter.items) == {
        "decide": 10,
        "select": 20,
        "arguments": 20,
        "integrate": 10,
    }
    assert sum(item.labels[0].note.startswith("semantic: ") for item in starter.items if item.step == "arguments") == 6
    for step in ("decide", "select", "arguments", "integrate"):
        share = [item.passes for item in starter.items if item.step == step]
        assert 0.4 <= sum(share) / len(share) <= 0.6


def test_a_family_of_near_misses_has_each_tool_taken_for_another(starter: LabelledSet) -> None:
    """A scenario of the family has a right and a wrong tool, both on offer in it."""
    by_group: dict[str, dict[bool, set[str]]] = defaultdict(lambda: {True: set(), False: set()})
    for item in starter.items:
        if item.step == "select" and item.family == "payments":
            by_group[item.group][item.passes] |= set(called(item))
    assert len(by_group) == 5
    for group, tools in by_group.items():
        assert tools[True], group
        assert tools[False], group
        assert not tools[True] & tools[False], group
