"""Apple's trajectory metrics beside the numbers of `tests/core/test_carried_numbers.py`: what is open, and laws."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.conclusion.conclude import conclude
from service.core.expectations.expectation import Expectation
from service.core.plan import plan
from service.core.trace import Message, Step, ToolCall, Trace
from service.registry import Registry, read_rubric
from tests.bulk import examples
from tests.core.carried_cases import report, values


def percentage(mode: str) -> dict[str, Any]:
    check = {"kind": "apple_trajectory", "metric": "percentage", "percentage_mode": mode}
    return {"id": "percentage", "stage": "sequence", "check": check}


@pytest.mark.parametrize(
    ("mode", "made", "value", "vacuous"),
    [
        ("callgrade", [["z"]], 0.0, False),
        ("apple", [["z"]], 1.0, True),
        ("callgrade", [], 1.0, False),
        ("apple", [], 1.0, True),
    ],
)
def test_bans_alone(mode: str, made: list[Any], value: float, vacuous: bool) -> None:
    case = {"made": made, "expected": {"disallowed": [{"tool": "z"}]}}
    found = report("apple_trajectory", case, compat=False, criteria=(percentage(mode),))
    assert values(found)["percentage"] == value
    assert values(found)["all_pass"] == float(not made)
    [criterion] = [criterion for criterion in found.criteria if criterion.id == "percentage"]
    noted = [f.code for one in criterion.outcomes for f in one.outcome.findings]  # type: ignore[union-attr]
    assert ("vacuous" in noted) == vacuous


@pytest.mark.parametrize("expected", [{"ordered": [{"tool": "a"}]}, {"calls": "none"}, {"disallowed": [{"tool": "a"}]}])
@pytest.mark.parametrize("compat", [True, False])
def test_a_missing_transcript_is_not_a_pass(expected: dict[str, Any], compat: bool) -> None:
    found = report("apple_trajectory", {"bare": True, "expected": expected}, compat=compat)
    assert (found.verdict, found.score, found.all_passed) == ("undecided", None, False)


@pytest.mark.parametrize(
    "said",
    [
        {"counts": {"a": "<=1"}},
        {"state": {"final": {"door": "open"}}},
        {"turns": [{"turn": 1, "disallowed": [{"tool": "a"}]}]},
    ],
    ids=["counts", "state", "turns"],
)
def test_what_apple_has_no_word_for_decides_the_verdict(said: dict[str, Any]) -> None:
    states = {"initial": {"door": "locked"}, "final": {"door": "ajar"}}
    case = {"made": [["a"], ["a"]], "state": states, "expected": {"ordered": [{"tool": "a"}], **said}}
    found = report("apple_trajectory", case, compat=False)
    assert found.verdict == "fail"
    assert found.score == (0.5 if "turns" in said else 1.0)


def test_a_finding_says_what_was_wrong_with_the_call_that_was_made() -> None:
    patterns = [{"tool": "a", "args": {"x": 1}}, {"tool": "b"}, {"tool": "c"}]
    found = report(
        "apple_trajectory", {"made": [["b"], ["a", {"x": 2}]], "expected": {"ordered": patterns}}, compat=False
    )
    said = {finding.path: finding.message for finding in found.findings()}
    assert said["/expected/ordered/0"] == "a was called, but x: expected 1, got 2"
    assert said["/expected/ordered/2"] == "c was expected and not called"


REGISTRY = Registry()
RUBRIC_OF = {
    compat: read_rubric({"id": "r", "extra_calls": "allow", "compat": compat, "criteria": [percentage("callgrade")]})
    for compat in (True, False)
}
PATTERN = st.fixed_dictionaries({"tool": st.sampled_from("ab")}, optional={"args": st.just({"x": 1})})
CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([{}, {"x": 1}])), max_size=4)


def met(calls: list[Any], ordered: list[Any], unordered: list[Any], *, compat: bool = False) -> float:
    steps = tuple(Step(n, 1, ToolCall(None, name, args)) for n, (name, args) in enumerate(calls))
    trace = Trace(None, "callgrade", None, (Message("user", "x", 1),), steps, None, 1)
    expected = Expectation.model_validate({"ordered": ordered, "unordered": unordered})
    score = conclude(plan(trace, REGISTRY.find(RUBRIC_OF[compat]), expected)).score
    assert score is not None
    return round(score * (len(ordered) + len(unordered)))


def fits(pattern: dict[str, Any], call: Any) -> bool:
    return pattern["tool"] == call[0] and ("args" not in pattern or call[1] == {"x": 1})


def most(calls: list[Any], ordered: list[Any], unordered: list[Any]) -> int:
    """The most expectations that can be met at once, by trying every one-to-one map."""
    patterns = [*ordered, *unordered]
    options = [*range(len(calls)), *[None] * len(patterns)]
    best = 0
    for chosen in set(permutations(options, len(patterns))):
        placed = [c for c in chosen[: len(ordered)] if c is not None]
        right = all(c is None or fits(p, calls[c]) for p, c in zip(patterns, chosen, strict=True))
        if right and placed == sorted(placed):
            best = max(best, sum(c is not None for c in chosen))
    return best


@given(CALLS, st.lists(PATTERN, max_size=2), st.lists(PATTERN, max_size=2))
@settings(deadline=None, max_examples=examples(60))
def test_the_most_are_met_that_can_be(calls: list[Any], ordered: list[Any], unordered: list[Any]) -> None:
    if ordered or unordered:
        assert met(calls, ordered, unordered) == most(calls, ordered, unordered)


@given(CALLS, st.lists(PATTERN, min_size=1, max_size=3))
@settings(max_examples=examples(60))
def test_apples_scan_never_finds_more_in_order(calls: list[Any], ordered: list[Any]) -> None:
    assert met(calls, ordered, [], compat=True) <= met(calls, ordered, [])
