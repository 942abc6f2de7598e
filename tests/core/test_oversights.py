"""What a request seems to have overlooked: expectations that nothing reads, names that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from service import Registry, score
from service.core.checks import Aspect, Check
from service.core.conclusion.oversights import find_oversights
from service.core.expectations.expectation import Expectation
from service.core.models.kinds import list_kinds
from service.core.trace import ToolDef, Trace
from tests.tables import DATA, read_yaml

TOOLS = (
    ToolDef(
        "refund_order",
        parameters={"type": "object", "properties": {"order_id": {"type": "string"}, "cents": {"type": "integer"}}},
    ),
    ToolDef("find_order", parameters={"type": "object", "properties": {"id": {}}, "additionalProperties": False}),
    ToolDef("log", parameters={"type": "object", "properties": {"text": {}}, "additionalProperties": True}),
    ToolDef("tag", parameters={"type": "object", "properties": {"n": {}}, "patternProperties": {"^x-": {}}}),
    ToolDef("broken", parameters={"type": "object", "properties": {"n": {"$ref": "http://elsewhere.example/"}}}),
    ToolDef("bare", parameters={"type": "object"}),
    ToolDef("any"),
)
REGISTRY = Registry()


def notes(rubric: Any, expected: dict[str, Any], tools: tuple[ToolDef, ...] | None = None) -> list[str]:
    found = REGISTRY.find(
        type(REGISTRY.find("four_step")).model_validate(rubric) if isinstance(rubric, dict) else rubric
    )
    trace = Trace(None, "callgrade", tools, (), (), None, 0)
    said = Expectation.model_validate(expected)
    return [f"{one.code} {one.path}" for one in find_oversights(trace, found, said, said.list_sections())]


@pytest.mark.parametrize(("rubric", "expected", "places"), read_yaml(DATA / "oversights" / "unread.yaml"))
def test_what_no_criterion_reads(rubric: Any, expected: dict[str, Any], places: list[str]) -> None:
    assert notes(rubric, expected) == [f"unread_expectation /expected/{place}".rstrip("/") for place in places]


def test_every_aspect_is_read_by_some_check_and_no_check_reads_another() -> None:
    read = {aspect for check in list_kinds(Check).values() for aspect in check.reads}
    assert read == set(Aspect.__args__)


@pytest.mark.parametrize(("expected", "found"), read_yaml(DATA / "oversights" / "unknown.yaml"))
def test_names_that_the_trace_does_not_know(expected: dict[str, Any], found: list[str]) -> None:
    told = [note for note in notes("three_layer", expected, TOOLS) if note.startswith("unknown_")]
    assert told == [f"unknown_{one.replace(' ', '_expected /expected')}" for one in found]


def test_a_judge_that_nothing_asks_is_named() -> None:
    judge = {"id": "polite", "level": "trace", "question": "Is it polite?", "scale": {"yes": 1.0, "no": 0.0}}
    gate = {"id": "a", "stage": "decide", "check": {"kind": "decide"}}
    trace = {"format": "callgrade", "events": [{"user": "Hi"}]}
    asked = {"id": "b", "stage": "integrate", "check": {"kind": "judge", "judge": "polite"}}
    for criteria, said in (([gate], ["unused_judge /rubric/judges/0"]), ([gate, asked], [])):
        rubric = {"id": "mine", "criteria": criteria, "judges": [judge]}
        found = score({"rubric": rubric, "trace": trace, "judges": "off"})
        assert [f"{f.code} {f.path}" for f in found.notes if f.code == "unused_judge"] == said
