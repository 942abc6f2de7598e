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
from tests.core.reports import one_check
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


A = {"tool": "a"}


@pytest.mark.parametrize(("rubric", "expected", "places"), read_yaml(DATA / "oversights" / "unread.yaml"))
def test_what_no_criterion_reads(rubric: Any, expected: dict[str, Any], places: list[str]) -> None:
    assert notes(rubric, expected) == [f"unread_expectation /expected/{place}".rstrip("/") for place in places]


EVERYTHING = {
    "calls": [A | {"args": {}, "result": 1}],
    "disallowed": [A],
    "allowed": ["a"],
    "counts": {"a": 1},
    "allow_extra": False,
    "answer": "Hi",
    "said": "Hi",
    "turns": [{"turn": 1, "ordered": [A, A]}, {"turn": 2, "calls": "none"}, {"turn": 3, "calls": "some"}],
    "state": {"final": 1},
    "output": 1,
}


def test_the_four_steps_read_everything() -> None:
    assert notes("four_step", EVERYTHING) == []


def test_a_rubric_that_reads_nothing_is_told_of_everything_once() -> None:
    found = notes(one_check("schema"), EVERYTHING)
    places = (
        "calls/0 calls/0/args calls/0/result allow_extra disallowed allowed counts answer said turns/0/ordered turns/1/calls "
        "turns/2/calls state output"
    )
    assert sorted(found) == sorted(f"unread_expectation /expected/{place}" for place in places.split())


def test_every_aspect_is_read_by_some_check_and_no_check_reads_another() -> None:
    read = {aspect for check in list_kinds(Check).values() for aspect in check.reads}
    assert read == set(Aspect.__args__)


@pytest.mark.parametrize(("expected", "found"), read_yaml(DATA / "oversights" / "unknown.yaml"))
def test_names_that_the_trace_does_not_know(expected: dict[str, Any], found: list[str]) -> None:
    told = [note for note in notes("three_layer", expected, TOOLS) if note.startswith("unknown_")]
    assert told == [f"unknown_{one.replace(' ', '_expected /expected')}" for one in found]


def test_nothing_is_unknown_where_the_trace_does_not_tell_its_tools() -> None:
    assert notes("arcade", {"calls": [{"tool": "x"}]}, None) == []
    assert notes("arcade", {"calls": [{"tool": "x"}]}, ()) == ["unknown_tool_expected /expected/calls/0/tool"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ({"tool": "refund_ordr"}, "refund_ordr is not among the tools of the trace; near: refund_order, find_order"),
        ({"tool": "zz"}, "zz is not among the tools of the trace"),
        ({"tool": "refund_order", "args": {"cent": 1}}, "refund_order declares no argument cent; near: cents"),
        ({"tool": "refund_order", "args": {"zz": 1}}, "refund_order declares no argument zz"),
    ],
)
def test_near_names_are_told(pattern: dict[str, Any], message: str) -> None:
    trace = Trace(None, "callgrade", TOOLS, (), (), None, 0)
    said = Expectation.model_validate({"calls": [pattern]})
    (found,) = find_oversights(trace, REGISTRY.find("arcade"), said, said.list_sections())
    assert found.message == message


def test_a_judge_that_nothing_asks_is_named() -> None:
    judge = {"id": "polite", "level": "trace", "question": "Is it polite?", "scale": {"yes": 1.0, "no": 0.0}}
    gate = {"id": "a", "stage": "decide", "check": {"kind": "decide"}}
    trace = {"format": "callgrade", "events": [{"user": "Hi"}]}
    asked = {"id": "b", "stage": "integrate", "check": {"kind": "judge", "judge": "polite"}}
    for criteria, said in (([gate], ["unused_judge /rubric/judges/0"]), ([gate, asked], [])):
        rubric = {"id": "mine", "criteria": criteria, "judges": [judge]}
        found = score({"rubric": rubric, "trace": trace, "judges": "off"})
        assert [f"{f.code} {f.path}" for f in found.notes if f.code == "unused_judge"] == said
