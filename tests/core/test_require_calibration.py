"""A rubric that requires calibration: a judge's value counts where it is calibrated, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import Plan, conclude, plan, report_json
from service.core.judging.fits.fit import Fit
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement
from service.core.judging.notes import JudgeReply
from service.core.outcome import Scored
from service.core.report import Report
from tests.core.reports import outcomes
from tests.fits import make_fit_of
from tests.replies import answer

ASKED = {"kind": "judge", "judge": "argument_plausibility"}
PLAUSIBLE = {"id": "argument_plausibility", "stage": "arguments", "check": ASKED}
TURNS = {"id": "answered", "stage": "integrate", "check": {"kind": "judge", "judge": "by_turn"}}
BY_TURN = {"id": "by_turn", "level": "turn", "question": "?", "scale": {"yes": 1.0, "no": 0.0}}
JURY = {**BY_TURN, "id": "jury", "models": ["a", "b"]}
CASCADE = {
    "id": "result_groundedness",
    "stage": "integrate",
    "check": {"kind": "cascade", "evidence": {"kind": "grounding"}, "judge": "result_groundedness", "veto": 0.5},
}
SCHEMA = {"id": "schema", "stage": "arguments", "check": {"kind": "schema"}}


def body(rubric: Any, *, said: str = "It came to $5,400.00.", expected: Any = None) -> dict[str, Any]:
    """Two turns; an order is looked up in the first one, and its price told."""
    tool = {"name": "get_order", "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}
    events = [
        {"user": "How much was order 9104?"},
        {"call": {"name": "get_order", "arguments": {"order_id": "9104"}}, "result": {"amount_cents": 540000}},
        {"assistant": said},
        {"user": "Thanks."},
        {"assistant": "You are welcome."},
    ]
    made = {"rubric": rubric, "trace": {"format": "callgrade", "tools": [tool], "events": events}}
    return made if expected is None else {**made, "expected": expected}


def rubric(*criteria: Any, required: bool = True, judges: Any = (), **more: Any) -> dict[str, Any]:
    made = {"id": "r", "criteria": list(criteria), "judges": list(judges), **more}
    return {**made, "require_calibration": True} if required else made


def replies(made: Plan, shares: Any = 0.0) -> dict[str, tuple[JudgeReply, ...]]:
    """An answer to each question; `shares` says how good they are, one after the other or all."""
    given_ = shares if isinstance(shares, list) else [shares] * len(made.asks)
    return {ask.key: answer(ask, share) for ask, share in zip(made.asks, given_, strict=True)}


def fits_of(made: Plan) -> list[Fit]:
    asked = {(ask.criterion, ask.judge.id): ask for ask in made.asks}
    return [make_fit_of(ask) for _, ask in sorted(asked.items())]


def shown(report: Report) -> Any:
    """All of a report but which rubric it is of."""
    return {**json.loads(report_json(report)), "rubric": None}


RUBRICS: dict[str, Any] = {
    "a step": ([PLAUSIBLE, SCHEMA], ()),
    "turns": ([TURNS], [BY_TURN]),
    "a jury": ([{**TURNS, "check": {"kind": "judge", "judge": "jury"}}], [JURY]),
    "a cascade": ([CASCADE, SCHEMA], ()),
    "all of them": ([PLAUSIBLE, TURNS, CASCADE, SCHEMA], [BY_TURN]),
}
ANSWERS = ["It came to $5,400.00.", "It came to $54.00.", "It was settled."]


@pytest.mark.parametrize("name", RUBRICS)
@given(data=st.data())
def test_what_is_not_calibrated_counts_as_if_nobody_had_answered(name: str, data: st.DataObject) -> None:
    criteria, judges = RUBRICS[name]
    made = plan(body(rubric(*criteria, judges=judges), said=data.draw(st.sampled_from(ANSWERS))))
    shares = data.draw(st.lists(st.floats(0, 1), min_size=len(made.asks), max_size=len(made.asks)))
    without, found = conclude(made, {}), conclude(made, replies(made, shares))
    assert not [one for one in outcomes(found) if isinstance(one, JudgedScore)]
    for field in ("verdict", "score", "coverage", "all_passed", "failing", "stages", "first_failing_stage"):
        assert getattr(found, field) == getattr(without, field), field
    assert [one.value for one in found.criteria] == [one.value for one in without.criteria]
    assert [(one.verdict, one.score) for one in found.steps] == [(one.verdict, one.score) for one in without.steps]


@pytest.mark.parametrize("name", RUBRICS)
@given(data=st.data())
def test_what_is_calibrated_counts_as_ever(name: str, data: st.DataObject) -> None:
    criteria, judges = RUBRICS[name]
    said = data.draw(st.sampled_from(ANSWERS))
    strict, lax = (plan(body(rubric(*criteria, judges=judges, required=on), said=said)) for on in (True, False))
    shares = data.draw(st.lists(st.floats(0, 1), min_size=len(lax.asks), max_size=len(lax.asks)))
    reports = [conclude(made, replies(made, shares), fits=fits_of(made)) for made in (strict, lax)]
    assert shown(reports[0]) == shown(reports[1])
    assert not [one for one in outcomes(reports[0]) if isinstance(one, OpenJudgement)]


WORDS = {"calls": [{"tool": "get_order", "args": {"order_id": {"kind": "natural_language", "criterion": "an order"}}}]}


@pytest.mark.parametrize(("share", "fitted"), [(1.0, False), (0.0, False), (1.0, True), (0.0, True)])
def test_words_in_an_expectation_are_judged_likewise(share: float, fitted: bool) -> None:
    """A value that only a judge can compare: uncalibrated, it is not known whether it fits."""
    arguments = {"id": "arguments", "stage": "arguments", "check": {"kind": "arguments"}}
    made = plan(body(rubric(arguments), expected=WORDS))
    assert [ask.judge.id for ask in made.asks] == ["natural_language"]
    report = conclude(made, replies(made, share), fits=fits_of(made) if fitted else [])
    [found] = [step.outcomes["arguments"] for step in report.steps]
    assert isinstance(found, Scored if fitted else OpenJudgement)
    if isinstance(found, Scored):
        assert found.passed == (share == 1.0)
