"""Where arguments come from: a table, and laws that hold for any conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import score
from service.core.grounding.arguments import MAX_ARGUMENTS, PROVED, CallReader, Located
from service.core.grounding.history import History
from service.core.trace import ToolDef, Trace
from service.intake.reading import read_trace
from tests.core.reports import one_check, outcomes
from tests.tables import DATA, named, read_yaml

TABLE: Any = read_yaml(DATA / "evidence" / "provenance.yaml")
RUBRIC = one_check("provenance")


def scored(events: list[Any], **more: Any) -> Any:
    """The report of a conversation, with the outcomes of the last call first."""
    trace = {"format": "callgrade", "events": events, "tools": TABLE["tools"], **more}
    return score({"trace": trace, "rubric": RUBRIC, "judges": "off"})


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_case(case: dict[str, Any]):
    step = scored(case["events"]).steps[-1]
    outcome = step.outcomes["it"]
    base = f"/steps/{step.index}/call/arguments/"
    found = {
        each.pointer.removeprefix(base): " ".join(filter(None, [each.origin, each.how, each.code]))
        for each in outcome.grounding
    }
    assert {name: found.get(name) for name in case["want"]} == case["want"]
    assert getattr(outcome, "value", None) == case.get("score", getattr(outcome, "value", None))
    assert {finding.path for finding in outcome.findings} == {one.pointer for one in outcome.grounding if one.code}


def locate_last(trace: Trace, tool: ToolDef | None) -> list[Located]:
    """Locate the arguments of the last call."""
    reader = CallReader(History(trace))
    located = [reader.locate(step, tool if step is trace.steps[-1] else None) for step in trace.steps]
    return located[-1]


@pytest.mark.parametrize(
    "case", read_yaml(DATA / "evidence" / "right_calls.yaml")["cases"], ids=lambda case: case["name"]
)
def test_a_right_call_is_never_proved_wrong(case: dict[str, Any]):
    record: dict[str, Any] = {"format": "callgrade", **{k: v for k, v in case.items() if k not in ("name", "tool")}}
    trace = read_trace(record)
    name, given = trace.steps[-1].call.name, case.get("tool", "")
    tool = ToolDef(name, given) if isinstance(given, str) else ToolDef(name, parameters=given)
    trace = replace(trace, tools=(tool,))
    assert not [each for each in locate_last(trace, tool) if each.grounded.code in PROVED]


NOTHING = [
    ("no call", []),
    ("no arguments", [{"call": {"name": "refund", "arguments": {}}}]),
    ("unparsable", [{"call": {"name": "refund", "arguments": "{"}}]),
]


@pytest.mark.parametrize("events", named(NOTHING))
def test_there_is_nothing_to_locate(events: list[Any]):
    assert [outcome.cause for outcome in outcomes(scored([{"user": "Go"}, *events]))] == ["not_applicable"]


WORD = st.text("abcdef0123456789-_ .@$%/:", max_size=12)
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORD),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORD, inner, max_size=3)),
    max_leaves=6,
)
IDENTIFIER = st.from_regex(r"\A[A-Z]{2}[1-9][0-9]{3,7}\Z")


@given(WORD, VALUE, st.dictionaries(st.sampled_from(["order_id", "amount", "date", "x"]), VALUE, max_size=4))
def test_every_leaf_is_located_once(said: str, result: Any, arguments: dict[str, Any]):
    events = [
        {"user": said},
        {"call": {"name": "look"}, "result": result},
        {"call": {"name": "do", "arguments": arguments}},
    ]
    trace = read_trace({"format": "callgrade", "events": events})
    found = locate_last(trace, None)
    assert len({each.grounded.pointer for each in found}) == len(found)


@given(IDENTIFIER, IDENTIFIER)
def test_an_identifier_passes_only_if_somebody_gave_it(given_one: str, used: str):
    events = [{"user": f"It is {given_one}."}, {"call": {"name": "refund", "arguments": {"order_id": used}}}]
    [located] = scored(events).steps[0].outcomes["it"].grounding
    assert (located.origin == "given") == (given_one == used)


@given(st.integers(1, 99_999), st.integers(-3, 3))
def test_the_point_of_an_amount_may_not_move(whole: int, shift: int):
    value = float(f"{whole}e{shift}")
    events = [{"user": f"Refund ${whole}."}, {"call": {"name": "refund", "arguments": {"usd": value}}}]
    assert scored(events).steps[0].outcomes["it"].passed == (shift == 0)


def test_no_more_arguments_are_located_than_a_cap():
    arguments = {f"a{n}": "W1" for n in range(MAX_ARGUMENTS + 5)}
    trace = read_trace(
        {"format": "callgrade", "events": [{"user": "Go"}, {"call": {"name": "do", "arguments": arguments}}]}
    )
    assert len(locate_last(trace, None)) == MAX_ARGUMENTS
