"""The cascade: what code proves is not asked, what it finds is shown, and a contradiction is a veto."""

from __future__ import annotations

from typing import Any

import pytest

from service import conclude, plan
from service.core.grounding.origins import GroundedScore
from service.core.judging.questions import build_question
from service.core.outcome import Errored, Scored, Skipped
from tests.core.reports import outcomes
from tests.fits import make_fit_of
from tests.replies import make_reply
from tests.tables import named

TRUE, FLIPPED, FREE = "It came to $5,400.00.", "It came to $54.00.", "It has been settled for a while."


def request(answer: str, *, order: str = "9104", expected: Any = None, **check: Any) -> dict[str, Any]:
    """An order is looked up and its price told. `check` changes the cascade at the fourth step."""
    cascade = {"kind": "cascade", "evidence": {"kind": "grounding"}, "judge": "result_groundedness", **check}
    criterion = {"id": "result_groundedness", "stage": "integrate", "check": cascade}
    tool = {"name": "get_order", "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}
    events = [
        {"user": "How much was order 9104?"},
        {"call": {"name": "get_order", "arguments": {"order_id": order}}, "result": {"amount_cents": 540000}},
        {"assistant": answer},
    ]
    trace = {"format": "callgrade", "tools": [tool], "events": events}
    body: dict[str, Any] = {"rubric": {"extends": "four_step", "criteria": [criterion]}, "trace": trace}
    return body if expected is None else {**body, "expected": expected}


def criteria(made: Any) -> list[str]:
    return [ask.criterion for ask in made.asks]


def outcome_of(report: Any, criterion: str) -> Any:
    return outcomes(report, criterion)[0]


def test_what_code_proves_wrong_is_not_asked():
    made = plan(request(FLIPPED))
    assert "result_groundedness" not in criteria(made)
    assert made.questions_saved == 1
    outcome = outcome_of(conclude(made, {}), "result_groundedness")
    assert isinstance(outcome, GroundedScore)
    assert (outcome.value, [finding.code for finding in outcome.findings]) == (0.0, ["scale_slip"])


@pytest.mark.parametrize("answer", [TRUE, FREE])
def test_what_it_leaves_open_is_asked_and_without_a_judge_not_scored(answer):
    made = plan(request(answer))
    assert "result_groundedness" in criteria(made)
    for mode, cause in (("none", "not_asked"), ("off", "out_of_scope")):
        outcome = outcome_of(conclude(made, mode=mode), "result_groundedness")
        assert isinstance(outcome, Skipped)
        assert (outcome.cause, outcome.open) == (cause, mode == "none")
    assert "result_groundedness" in {left.criterion for left in conclude(made).not_asked}


def test_the_judge_sees_the_evidence():
    made = plan(request(TRUE))
    ask = next(ask for ask in made.asks if ask.criterion == "result_groundedness")
    shown = {part.name: part.value for part in build_question(ask, made.trace).parts}
    [value] = shown["evidence"]  # type: ignore[misc]
    assert (value["value"], value["origin"]) == ("$5,400.00", "found")  # type: ignore[index,call-overload]
    assert value["sources"] == ["/steps/0/result/content/amount_cents"]  # type: ignore[index,call-overload]
    free = plan(request(FREE))
    ask = next(ask for ask in free.asks if ask.criterion == "result_groundedness")
    assert "evidence" not in {part.name for part in build_question(ask, free.trace).parts}


VETOES = [(None, 1.0, True), (0.5, 0.5, False), (0.8, 0.8, True), (1.0, 1.0, True)]


@pytest.mark.parametrize(("veto", "value", "passed"), VETOES)
def test_a_veto_caps_what_the_judge_may_give(veto, value, passed):
    made = plan(request(FLIPPED, veto=veto))
    assert "result_groundedness" in criteria(made)
    replies = {"result_groundedness/turn/1": (make_reply("grounded", 1.0),)}
    outcome = outcome_of(conclude(made, replies), "result_groundedness")
    assert (outcome.value, outcome.raw, outcome.passed) == (value, 1.0, passed)
    assert "scale_slip" in [finding.code for finding in outcome.findings]


def test_a_judge_that_is_down_leaves_what_code_proved():
    made = plan(request(FLIPPED))
    replies = {ask.key: (Errored("provider_error", "down"),) for ask in made.asks}
    assert isinstance(outcome_of(conclude(made, replies), "result_groundedness"), Scored)
    open_one = plan(request(TRUE))
    replies = {ask.key: (Errored("provider_error", "down"),) for ask in open_one.asks}
    assert isinstance(outcome_of(conclude(open_one, replies), "result_groundedness"), Errored)


# What a fit is bound to, and what of it is changed.
BOUND: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("as it was fitted", {}, {}, "calibrated"),
    ("fitted without evidence", {"evidence": ""}, {}, "mismatched"),
    ("fitted with other evidence", {"evidence": "0" * 64}, {}, "mismatched"),
    ("another veto", {}, {"veto": 0.5}, "mismatched"),
    ("a criterion without evidence", {}, {"kind": "judge"}, "mismatched"),
    ("without, for one without", {"evidence": ""}, {"kind": "judge"}, "calibrated"),
]


@pytest.mark.parametrize(("fields", "check", "status"), named(BOUND))
def test_a_fit_is_bound_to_all_that_is_asked(fields: dict[str, Any], check: dict[str, Any], status: str) -> None:
    [fitted] = [ask for ask in plan(request(FREE)).asks if ask.criterion == "result_groundedness"]
    asked = request(FREE, **check)
    if check.get("kind") == "judge":
        del asked["rubric"]["criteria"][0]["check"]["evidence"]
    made = plan(asked)
    replies = {ask.key: (make_reply("grounded", 1.0),) for ask in made.asks if ask.criterion == "result_groundedness"}
    report = conclude(made, replies, mode="live", fits=[make_fit_of(fitted, **fields)])
    assert outcome_of(report, "result_groundedness").calibration.status == status
