"""Failed tries beside the table of `tests/data/gates/retries.yaml`: what a report and judges see, and lost results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from service import conclude, plan, score
from service.core.plan import plan as plan_of
from service.core.trace import UnreadablePart
from tests.bulk import examples

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
