"""Certificates: exact bounds against figures worked out apart from our code, looks that cost, and what is stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from math import comb

import pytest
from pydantic import ValidationError

from service.calibration.certifying import bound_recognised, certify, digest_labels
from service.calibration.results import HeldOutItem
from service.core.judging.fits.certificate import Certificate
from tests.calibration.test_discrimination import run_judge
from tests.fits import make_fit

DAY = date(2026, 5, 2)

CLOPPER_PEARSON = [(10, 10, 0.05), (29, 29, 0.05), (9, 10, 0.05), (1, 10, 0.05), (10, 10, 0.025), (95, 100, 0.025)]


def rows(right: int, count: int, *, size: int = 1) -> list[HeldOutItem]:
    return [HeldOutItem(f"i{n}", f"g{n // size}", True, 1.0, 1.0, n < right) for n in range(count)]


@pytest.mark.parametrize(("right", "count", "error"), CLOPPER_PEARSON)
def test_bounds_are_those_of_clopper_and_pearson(right: int, count: int, error: float) -> None:
    """If the share were the bound, so many or more would be recognised with the chance of the error."""
    found = bound_recognised(rows(right, count), 0.9, (error, error), error)
    assert (found.labels, found.recognised, found.low_in_all) == (count, right, found.low)
    tail = sum(comb(count, k) * found.low**k * (1 - found.low) ** (count - k) for k in range(right, count + 1))
    assert tail == pytest.approx(error, abs=1e-9)
    assert bound_recognised(rows(0, count), 0.9, (error, error), error).low == 0


@pytest.mark.parametrize(
    ("right", "count", "needed"), [(28, 28, 29), (29, 29, None), (57, 60, 116), (90, 100, None), (0, 0, 29)]
)
def test_how_many_labels_would_reach_the_floor(right: int, count: int, needed: int | None) -> None:
    found = bound_recognised(rows(right, count), 0.9, (0.05, 0.05), 0.05)
    assert (found.needed, found.reached) == (needed, right == count == 29)


@pytest.mark.parametrize(("count", "size"), [(0, 1), (20, 1), (6, 3), (21, 3)])
@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize("judges", [1, 2])
def test_as_many_labels_as_are_needed_certify_in_the_next_look(count: int, size: int, look: int, judges: int) -> None:
    """If the judge recognises all of them; with one group less it is not certified yet."""
    (judge,) = run_judge("as it is")[0].report.judges

    def look_at(number: int, look: int) -> Certificate:
        failures = [replace(one, id=f"f{one.id}", label=False, passed=False) for one in rows(99, 99)]
        side = replace(judge, items=(*rows(number, number, size=size), *failures))
        return certify([side] * judges, tpr=0.9, tnr=0.9, look=look, made=DAY)[judge.fit_id]

    before = look_at(count, look)
    needed = before.passes.needed
    assert not before.certified
    assert needed is not None
    assert f"{needed - count} more passes needed ({needed} in all)" in before.explain()
    assert look_at(needed, look + 1).certified
    assert not look_at(needed - size, look + 1).certified


def test_labels_that_are_alike_within_a_group_count_as_one() -> None:
    """40 labels of 10 groups, all recognised: nothing shows how groups differ, so these are 10 labels."""
    assert bound_recognised(rows(40, 40, size=4), 0.9, (0.05, 0.05), 0.05).low == pytest.approx(0.05 ** (1 / 10))


def test_judges_that_are_certified_together_share_the_error_and_each_look_halves_it() -> None:
    (judge,) = run_judge("as it is")[0].report.judges
    alone = certify([judge], tpr=0.6, tnr=0.6, look=1, made=DAY)[judge.fit_id]
    assert alone.passes.low == alone.passes.low_in_all
    again = certify([judge], tpr=0.6, tnr=0.6, look=2, made=DAY)[judge.fit_id]
    assert (alone.error, again.error, again.labels == alone.labels) == (0.05, 0.025, True)
    assert again.passes.low < alone.passes.low
    (other,) = run_judge("inverted")[0].report.judges
    both = certify([judge, other], tpr=0.6, tnr=0.6, look=1, made=DAY)
    assert both[judge.fit_id].passes.low == alone.passes.low
    assert both[judge.fit_id].passes.low_in_all == again.passes.low
    assert digest_labels([judge, other]) == digest_labels([judge])
    assert "look 2 at these labels" in again.explain()


def certificate(**changes: object) -> Certificate:
    side = {"labels": 29, "recognised": 29, "low": 0.9019, "low_in_all": 0.9019, "floor": 0.9}
    given = {"passes": side, "failures": side, "labels": "a" * 64, "look": 1, "judges": 1, "made": DAY, **changes}
    return Certificate.model_validate(given)


@pytest.mark.parametrize("wrong", [{"recognised": 30}, {"low": 0.89}, {"recognised": 20}, {"low_in_all": 0.95}])
def test_bounds_above_what_was_seen_are_no_certificate(wrong: dict[str, float]) -> None:
    side = {"labels": 29, "recognised": 29, "low": 0.9019, "low_in_all": 0.9019, "floor": 0.9, **wrong}
    with pytest.raises(ValidationError, match="expected low_in_all"):
        certificate(passes=side)


def test_the_last_look_counts_and_a_judge_that_is_not_useful_is_never_certified() -> None:
    good, bad = certificate(), certificate(failures={**certificate().failures.model_dump(), "floor": 0.95})
    fits = [make_fit(certificates=given) for given in ((), (good,), (good, bad), (bad, good))]
    assert [fit.certified for fit in fits] == [False, True, False, True]
    assert len({fit.id for fit in fits}) == 1
    assert not make_fit(certificates=(good,), discrimination=None).certified
