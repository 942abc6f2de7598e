"""Published methods beside their tables in `tests/data`: laws, rewards, and what has no number there."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import InputError, Report, score
from service.core.conclusion.conclude import conclude
from service.core.expectations.expectation import Expectation
from service.core.plan import plan
from service.core.trace import Message, Step, ToolCall, Trace
from service.registry import Registry, read_rubric
from tests.bulk import examples
from tests.core.carried_cases import STAGES, codes, load, report, values

# Apple: what is met is the most that can be.

REGISTRY = Registry()
PERCENTAGE = {"id": "percentage", "stage": "sequence", "check": {"kind": "apple_trajectory", "metric": "percentage"}}
RUBRIC_OF = {
    compat: read_rubric({"id": "r", "extra_calls": "allow", "compat": compat, "criteria": [PERCENTAGE]})
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


# UiPath: tools by id, and texts of spans.

# what the call names its tool by (name, id), what is expected, UiPath's number, ours
BY_ID = [
    (("search", None), "search", 1, 1),
    (("search", "t1"), "t1", 1, 1),
    (("search", "t1"), "search", 0, 1),
    (("search", "t 1"), "t_1", 0, 0),
]


@pytest.mark.parametrize("part", list(STAGES))
@pytest.mark.parametrize(("made", "expected", "theirs", "ours"), BY_ID)
def test_a_call_with_an_id_of_its_tool(
    part: str, made: tuple[str, str | None], expected: str, theirs: float, ours: float
) -> None:
    call = {"name": made[0], "arguments": {"x": 1}, "tool_id": made[1]}
    trace = {"format": "callgrade", "events": [{"user": "Please."}, {"call": call, "result": "r"}]}
    pattern = {"tool": expected, "args": {"x": 1}, "result": "r"}
    wanted = {"ordered": [pattern], "counts": {expected: 1}}
    for compat, number in ((True, theirs), (False, ours)):
        rubric = {"extends": f"uipath_tool_call_{part}", "compat": compat}
        assert score({"rubric": rubric, "trace": trace, "expected": wanted}).score == number


SPAN_TEXTS = [("[1,2]", "[1,2]", 1), ("[1,2]", "[1, 2]", 0), ('{"content": "[1,2]"}', "[1,2]", 1), ("0", "0", 1)]


@pytest.mark.parametrize("compat", [True, False])
@pytest.mark.parametrize(("told", "expected", "value"), SPAN_TEXTS)
def test_the_text_of_a_span_is_text(told: str, expected: str, value: float, compat: bool) -> None:
    attributes = {"tool.name": "f", "input.value": "{'x': 1}", "output.value": told}
    span = {"name": "f", "trace_id": "a", "span_id": "b", "attributes": attributes}
    rubric = {"extends": "uipath_tool_call_output", "compat": compat}
    trace = {"format": "spans", "spans": [span]}
    wanted = {"calls": [{"tool": "f", "result": expected}]}
    assert score({"rubric": rubric, "trace": trace, "expected": wanted}).score == value


# tau-bench.

TAU = load("tau")


def run(
    said: str, *, outputs: list[str], final: Any = 1, end: str = "###STOP###", compat: bool = False, **more: Any
) -> Report:
    texts = [("user", "Please."), ("assistant", said), ("user", end)]
    conversation = [{"role": role, "content": text} for role, text in texts]
    states = {"initial": {"n": 0}, "gold": {"n": 1}, "final": {"n": final}}
    record = {"format": "tau", "task_id": 1, "messages": conversation, "outputs": outputs, **states, **more}
    return score({"rubric": {"extends": "tau_reward", "compat": compat}, "trace": record})


@pytest.mark.parametrize(("gold", "compared", "made", "theirs", "ours"), TAU["actions"])
@pytest.mark.parametrize("compat", [True, False])
def test_gold_actions(gold: Any, compared: Any, made: Any, theirs: float, ours: float, compat: bool) -> None:
    action = {"name": "f", "kwargs": gold, "compare_args": compared}
    case = {"made": [["f", args] for args in made], "expected": {"format": "tau", "actions": [action]}}
    found = report("tau_reward", case, compat=compat)
    assert values(found)["actions"] == (theirs if compat else ours)


@pytest.mark.parametrize("made", [[], [["f", {"a": 1}]]])
def test_a_matcher_has_no_match_there_whatever_was_called(made: Any) -> None:
    expected = {"calls": [{"tool": "f", "args": {"a": {"kind": "range", "min": 1}}}]}
    with pytest.raises(InputError, match="/expected/calls/0/args/a"):
        report("tau_reward", {"made": made, "expected": expected}, compat=True)


def test_one_call_is_one_action() -> None:
    action = {"name": "f", "kwargs": {"a": 1}}
    case = {"made": [["f", {"a": 1}]], "expected": {"format": "tau", "actions": [action, action]}}
    assert [values(report("tau_reward", case, compat=compat))["actions"] for compat in (True, False)] == [1, 0]


@pytest.mark.parametrize(("said", "outputs", "final", "end", "theirs", "ours"), TAU["rewards"])
def test_tau_rewards(said: str, outputs: list[str], final: Any, end: str, theirs: float, ours: float) -> None:
    found = run(said, outputs=outputs, final=final, end=end)
    assert (found.score, found.verdict) == (ours, "pass" if ours else "fail")
    assert ("not_ended" in codes(found)) == (end == "Bye.")
    upstream = run(said, outputs=outputs, final=final, end=end, compat=True)
    assert upstream.score == theirs
    assert ("compat_differs" in codes(upstream)) == (theirs != ours)


def test_a_call_can_end_a_run() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "transfer_to_human_agents", "arguments": "{}"}}
    said = [{"role": "user", "content": "Help."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert run("", outputs=[], compat=True, messages=said).score == 1.0


def test_without_a_final_state_there_is_no_reward() -> None:
    record = {"format": "tau", "task_id": 1, "messages": [{"role": "user", "content": "###STOP###"}], "gold": {"n": 1}}
    found = score({"rubric": "tau_reward", "trace": record})
    assert (found.verdict, found.score) == ("undecided", None)


def test_gold_without_actions_leaves_reading_free() -> None:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}]  # fmt: skip
    record = {"format": "tau", "task_id": 1, "messages": messages, "gold_actions": [], "tools": []}
    found = score({"rubric": "four_step", "trace": record})
    assert "over_call" not in codes(found)


# All of them.

AS = {"kind": "pattern", "pattern": "a+"}
LONG = {"tool": "f", "args": {"x": AS}, "result": AS}


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("apple_trajectory", "percentage"),
        ("apple_trajectory", "all_pass"),
        ("future_agi_function_calling", "function_call_accuracy"),
        ("future_agi_function_calling", "function_call_exact_match"),
        ("uipath_tool_call_args", "args"),
        ("uipath_tool_call_output", "output"),
    ],
)
def test_what_is_too_long_to_compare_is_no_score(name: str, criterion: str) -> None:
    made = {"made": [["f", {"x": "a" * 200_000}, "a" * 200_000]], "expected": {"ordered": [LONG]}}
    assert values(report(name, made, compat=False))[criterion] is None
    short = {"made": [["f", {"x": "a"}, "a"]], "expected": {"ordered": [LONG]}}
    assert values(report(name, short, compat=False))[criterion] == 1.0


@pytest.mark.parametrize(
    "name",
    [
        *("apple_trajectory", "future_agi_function_calling", "three_layer"),
        *[f"uipath_tool_call_{part}" for part in ("args", "order", "output")],
    ],
)
def test_a_call_of_a_tool_that_nobody_names_raises_nothing(name: str) -> None:
    for made in ([["a", {"x": 1}]], [["b"], ["a", {"x": 2}]], [["a", {"x": 1}], ["b"]]):
        expected = {"ordered": [{"tool": "a", "args": {"x": 1}, "result": None}, {"tool": "b"}]}
        for place in range(len(made) + 1):
            longer = [*made[:place], ["spare"], *made[place:]]
            cases = [{"made": calls, "expected": expected} for calls in (made, longer)]
            one, other = [report(name, case, compat=False).score for case in cases]
            assert (other or 0.0) <= (one or 0.0)
