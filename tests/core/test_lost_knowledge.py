"""Knowledge that is taken away beside `tests/data/gates/lost.yaml`: by judges, from rates, after a trace was read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import conclude, plan, score
from service.core.plan import plan as plan_of
from service.core.trace import State, ToolCall, Trace, UnreadablePart
from service.reporting.summaries import summarize_reports
from tests.bulk import examples
from tests.replies import make_reply

Json = Any


def events(*given: Json, **more: Json) -> Json:
    return {"format": "callgrade", "events": [{"user": "x"}, *given], **more}


def test_a_judge_that_stands_in_for_a_check_does_not_outweigh_it_where_it_is_open() -> None:
    asked = {"kind": "judge", "judge": "tool_selection", "unless": "x"}
    rubric = {
        "id": "standing_in",
        "thresholds": {"fail": 0.8, "warn": 0.9},
        "criteria": [
            {"id": "x", "stage": "effect", "check": {"kind": "results"}},
            {"id": "y", "stage": "select", "weight": 9.0, "check": asked},
        ],
    }
    wanted = {"kind": "similar", "value": "b" * 6_000}
    request = {
        "rubric": rubric,
        "trace": events({"call": {"name": "f"}, "result": "a" * 6_000}),
        "expected": {"calls": [{"tool": "f", "result": wanted}]},
    }
    made = plan(request)
    assert conclude(made, {ask.key: (make_reply("right", 1.0),) for ask in made.asks}).verdict == "undecided"


def test_a_rate_over_decisions_is_open_where_a_call_is_not_read() -> None:
    def report(*items: Json) -> Json:
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
        trace = {"format": "openai_responses", "input": "Hi", "output": [*items, said]}
        return conclude(plan({"trace": trace, "expected": {"calls": "none"}, "judges": "off"}), mode="off")

    called = {"call_id": "1", "name": "wipe", "arguments": "{}"}
    right, over = report(), report({"type": "function_call", **called})
    unread = report({"type": "some_new_call", **called})
    for text in ("decide.accuracy >= 1", "decide.no_call.recall >= 1", "decide.no_call.f1 >= 1"):
        gates = [summarize_reports([right, other], assertions=[text]).gate for other in (right, over, unread)]
        decided = [(gate.passed, gate.undecided) for gate in gates if gate]
        assert decided == [(True, False), (False, False), (False, True)]


def lost(request: Json, change: Any) -> str:
    """The verdict on a request whose trace was changed after it was read."""
    made = plan({"judges": "off", **request})
    return conclude(plan_of(change(made.trace), made.rubric, made.expectation), mode="off").verdict


def hide_arguments(trace: Trace) -> Trace:
    steps = [replace(step, call=ToolCall(None, step.call.name, None, captured=False)) for step in trace.steps]
    return replace(trace, steps=tuple(steps))


@pytest.mark.parametrize(
    "rubric", ["arcade", "apple_trajectory", "uipath_tool_call_args", {"extends": "arcade", "compat": True}]
)
def test_arguments_that_telemetry_hides_are_not_wrong(rubric: Json) -> None:
    trace = events({"call": {"name": "f", "arguments": {"a": 1}}, "result": {"ok": True}})
    request = {"rubric": rubric, "trace": trace, "expected": {"calls": [{"tool": "f", "args": {"a": 1}}]}}
    assert lost(request, lambda trace: trace) == "pass"
    assert lost(request, hide_arguments) == "undecided"


def test_a_sandbox_that_failed_hides_no_error() -> None:
    """The error of the second call is lost with its result; the first was dealt with."""
    failed, fine = {"result": {"error": 1}, "is_error": True}, {"result": {"ok": 1}}
    made = (("look", failed), ("look", fine), ("refund", failed))
    calls = [{"call": {"name": name}, **result} for name, result in made]
    request = {"trace": events(*calls), "expected": {"calls": [{"tool": "look"}, {"tool": "look"}, {"tool": "refund"}]}}

    def break_sandbox(trace: Trace) -> Trace:
        *before, last = trace.steps
        return replace(trace, steps=(*before, replace(last, result=None)), state=State(fault="timed out"))

    assert lost(request, lambda trace: trace) == "fail"
    assert lost(request, break_sandbox) == "undecided"


# Failed tries beside `tests/data/gates/retries.yaml`: what a report and judges see, and lost results.

EXPECTED = {"calls": [{"tool": "book", "args": {"slot": "A1"}}]}
BOOK = {"name": "book", "parameters": {"type": "object"}}


def request_of(*made: tuple[str, bool], **more: Any) -> dict[str, Any]:
    """A request whose calls have this slot, and failed or not."""
    events = [
        {
            "call": {"name": "book", "arguments": {"slot": slot}},
            "result": "busy" if failed else "ok",
            "is_error": failed,
        }
        for slot, failed in made
    ]
    trace = {"format": "callgrade", "tools": [BOOK], "events": [{"user": "Book A1."}, *events]}
    return {"trace": trace, "expected": EXPECTED, **more}


def test_a_step_says_that_it_is_a_failed_try() -> None:
    report = conclude(plan(request_of(("A1", True), ("A1", False))), mode="off")
    assert [(step.retry, step.matched, step.unexpected) for step in report.steps] == [
        (1, None, False),
        (None, 0, False),
    ]
    assert report.missing == ()


def test_no_judge_is_asked_about_a_try_of_an_expected_call() -> None:
    assert [ask.key for ask in plan(request_of(("A9", True), ("A1", False))).asks if ask.step is not None] == []


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["A1", "A9"]), st.booleans()), min_size=1, max_size=4),
    st.sets(st.integers(0, 3)),
    st.booleans(),
)
def test_a_result_that_is_lost_decides_nothing(made: list[tuple[str, bool]], lost: set[int], placed: bool) -> None:
    """Neither for the better nor for the worse; also where nobody knows whose result it was (not `placed`)."""
    whole = plan(request_of(*made))
    steps = tuple([replace(step, result=None) if step.index in lost else step for step in whole.trace.steps])
    unread = tuple(
        [
            UnreadablePart("result", "/x", "in a form that is not read", 1, step.index if placed else None)
            for step in steps
            if step.result is None
        ]
    )
    less = plan_of(replace(whole.trace, steps=steps, unread=unread), whole.rubric, whole.expectation)
    before, after = (conclude(one, mode="off").verdict for one in (whole, less))
    assert after in (before, "undecided")


def test_a_retry_is_found_however_many_calls_come_between() -> None:
    def event(x: int, *, ok: bool = True) -> dict[str, Any]:
        return {"call": {"name": "a", "arguments": {"x": x}}, "result": "ok" if ok else "boom", "is_error": not ok}

    events = [event(1, ok=False), *[event(n) for n in range(2, 102)], event(1)]
    wanted = [{"tool": "a", "args": {"x": n}} for n in range(1, 102)]
    found = score({"trace": {"format": "callgrade", "events": events}, "expected": {"calls": wanted}, "judges": "off"})
    assert (found.verdict, found.steps[0].retry, found.failing) == ("pass", 101, ())
