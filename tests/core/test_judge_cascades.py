"""A cascade of judges: the next one is asked where the fit of the one before leaves the verdict open, and only there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service import Plan, conclude
from service.core.conclusion.conclude import list_next_asks
from service.core.judging.fits import Binding, Fit, Guarantee
from service.core.judging.judges import Ask
from service.core.judging.questions import ASSEMBLY
from service.core.outcome import Errored
from service.core.report import Report
from service.core.rubric import Rubric
from service.engine import report_json
from service.errors import InputError, RubricError
from service.reading.request import plan_request, read_request
from service.registry import Registry
from service.reporting.summaries import read_report
from tests.core.test_require_calibration import body, votes
from tests.fits import make_fit

SCALE = {"no": 0.0, "rather_not": 0.3, "unsure": 0.5, "rather": 0.7, "yes": 1.0}
CHEAP = {"id": "cheap", "level": "trace", "question": "?", "scale": SCALE, "models": ["m1"]}
STRONG = {**CHEAP, "id": "strong", "models": ["m2", "m3"]}
BY_TURN = {**CHEAP, "id": "by_turn", "level": "turn"}
REGISTRY = Registry()


def rubric(*, guarantee: float | None = None, then: tuple[str, ...] = ("strong",)) -> dict[str, Any]:
    check = {"kind": "judge", "judge": "cheap", "then": list(then), "guarantee": guarantee}
    return {
        "id": "r",
        "criteria": [{"id": "c", "stage": "decide", "must_pass": True, "check": check}],
        "judges": [CHEAP, STRONG, BY_TURN],
    }


def planned(**more: Any) -> Plan:
    request = read_request(body(rubric(**more)))
    return plan_request(request, REGISTRY.find(request.rubric))


PLAN = planned()
BINDINGS = {
    name: Binding(name, PLAN.rubric.judges_by_id[name].digest, models, ASSEMBLY)
    for name, models in (("cheap", "m1"), ("strong", "m2+m3"))
}


def fit_of(name: str, *, after: str | None = None, share: float = 0.9, **more: Any) -> Fit:
    """Accepts values of 0 and of 1."""
    binding = BINDINGS[name]
    promise = Guarantee(share=share, passes_from=1.0, fails_to=0.0, after=after)
    bound = {"judge": name, "judge_digest": binding.digest, "model": binding.model, "assembly": ASSEMBLY}
    return make_fit(**{**bound, "groups": 100, "guarantee": promise, **more})


FITS = (fit_of("cheap"), fit_of("strong", after=fit_of("cheap").id))


def run(made: Plan, *shares: float | str, fits: tuple[Fit, ...] = FITS) -> tuple[Report, int]:
    """The report and how many questions were asked; the judges say these, one after the other; a text is a fault."""
    given_, asks, known = iter(shares), made.asks, dict[str, Any]()
    while asks:
        known |= {ask.key: answer(ask, next(given_)) for ask in asks}
        asks = list_next_asks(made, known, fits=fits)
    return conclude(made, known, mode="live", fits=fits), len(known)


def answer(ask: Ask, share: float | str) -> tuple[Any, ...]:
    return (Errored("timeout", share),) if isinstance(share, str) else tuple(votes(ask, share))


@pytest.mark.parametrize(
    ("shares", "verdict", "asked", "earlier"),
    [
        ((1.0,), "pass", 1, 0),
        ((0.0,), "fail", 1, 0),
        ((0.5, 1.0), "pass", 2, 1),
        ((0.7, 0.0), "fail", 2, 1),
        ((0.5, 0.7), "undecided", 2, 1),
        (("slow",), "undecided", 1, None),
        ((0.5, "slow"), "undecided", 2, None),
    ],
)
def test_who_is_asked_and_what_comes_of_it(
    shares: tuple[Any, ...], verdict: str, asked: int, earlier: int | None
) -> None:
    report, count = run(PLAN, *shares)
    assert (report.verdict, count) == (verdict, asked)
    outcome: Any = report.criteria[0].outcomes[0].outcome
    if earlier is None:
        assert isinstance(outcome, Errored)
        return
    assert [one.judge.id for one in outcome.earlier] == ["cheap"][:earlier]
    assert outcome.judge.id == ("strong" if earlier else "cheap")
    assert outcome.calibration.guarantee.share == 0.9
    assert report.provenance.replies == (3 if earlier else 1)
    assert read_report(json.loads(report_json(report))) == report


GUARANTEED = planned(guarantee=0.9)


@pytest.mark.parametrize(
    ("fits", "shares", "verdict", "why"),
    [
        (FITS, (0.5, 1.0), "pass", None),
        (FITS, (1.0,), "pass", None),
        ((), (1.0,), "undecided", "there is no fit that may be used"),
        ((fit_of("cheap", share=0.8),), (1.0,), "undecided", "0.9 is to be promised of it, and its fit promises 0.8"),
        ((fit_of("cheap", guarantee=None),), (1.0,), "undecided", "its fit promises nothing"),
        ((FITS[0], fit_of("strong")), (0.5, 1.0), "undecided", "where other judges, or other fits of them, decided"),
        ((fit_of("cheap", labels=200), FITS[1]), (0.5, 1.0), "undecided", "or other fits of them, decided before"),
        ((fit_of("cheap", stale=True),), (1.0,), "undecided", "its fit is too old"),
    ],
)
def test_a_guarantee_lets_only_count_what_is_promised(
    fits: tuple[Fit, ...], shares: tuple[float, ...], verdict: str, why: str | None
) -> None:
    report, _ = run(GUARANTEED, *shares, fits=fits)
    assert report.verdict == verdict
    if why is not None:
        assert why in report.open[0].reason


@given(
    st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), min_size=2, max_size=2),
    st.sampled_from([PLAN, GUARANTEED]),
    st.integers(0, 1),
)
def test_a_fault_never_makes_one_pass(shares: list[float], made: Plan, at: int) -> None:
    before = run(made, *shares)[0].verdict
    faulty: list[float | str] = [*shares]
    faulty[at] = "slow"
    after = run(made, *faulty)[0].verdict
    assert after in (before, "undecided")


def test_what_cannot_be_a_cascade_is_refused() -> None:
    with pytest.raises(RubricError, match="no judge nobody"):
        REGISTRY.find(Rubric.model_validate(rubric(then=("nobody",))))
    with pytest.raises(RubricError, match="cheap is asked of a trace, and by_turn, after it, of a turn"):
        REGISTRY.find(Rubric.model_validate(rubric(then=("by_turn",))))
    for share in (0.4, 1.0):
        with pytest.raises((ValidationError, InputError)):
            Rubric.model_validate(rubric(guarantee=share))
