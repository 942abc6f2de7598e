"""What is promised of accepted verdicts, side by side and held out; and certificates, whose looks cost."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from itertools import product
from math import comb
from typing import NamedTuple

import numpy as np
import pytest
from pydantic import ValidationError

from service.calibration.bench import Bench, build_bench
from service.calibration.certifying import bound_recognised, certify, digest_labels
from service.calibration.figures import HeldOutItem, Resampling
from service.calibration.labels import LabelledSet, build_labelled_set
from service.calibration.options import ReportOptions, find_guarantees
from service.calibration.predictions import JudgePredictions, Prediction
from service.calibration.run import calibrate
from service.core.judging.fits.certificate import Certificate, Guarantee
from service.core.judging.fits.fit import Binding
from service.stats.tallies import Floats
from tests.calibration.label_sets import drawn, item
from tests.calibration.test_discrimination import run_judge
from tests.fits import make_fit

QUICK = ReportOptions(resampling=Resampling(draws=0), jury=False, guarantee=0.9)


def sides(raw: float, agreeing: int, differing: int, *, passed: bool) -> list[HeldOutItem]:
    labels = [passed] * agreeing + [not passed] * differing
    share = agreeing / (agreeing + differing)
    value = share if passed else 1 - share
    return [HeldOutItem("", f"{raw}/{n}", label, raw, value, passed) for n, label in enumerate(labels)]


def find_guarantee(items: list[HeldOutItem], share: float) -> Guarantee:
    return find_guarantees(items, [share])[share]


def test_a_side_does_not_make_up_for_the_other() -> None:
    sure, poor = sides(0.1, 100, 0, passed=False), sides(0.9, 86, 14, passed=True)
    assert find_guarantee([*sure, *poor], 0.9) == Guarantee(share=0.9, fails_to=0.1)
    assert find_guarantee([*sure, *poor], 0.75) == Guarantee(share=0.75, fails_to=0.1, passes_from=0.9)
    nothing = find_guarantee(sides(0.5, 20, 10, passed=True), 0.9)
    assert not nothing.accepts_any
    assert not nothing.accepts(1.0)


class Cell(NamedTuple):
    """So many labels, of which `rate` pass, and judges of so many levels, which lie apart by label as far as `skill` says.

    Items are in groups of `size`, as alike as `alike` says.
    """

    labels: int
    levels: int
    skill: float
    rate: float
    size: int = 1
    alike: float = 0.0


EVERY = [
    Cell(*one, *grouped)
    for one in product((100, 300, 1000), (3, 12, 60), (2.0, 5.0), (0.3, 0.6))
    for grouped in ((1, 0.0), (5, 0.2), (10, 0.5))
]
SOME = [Cell(300, 12, 5.0, 0.6), Cell(300, 12, 2.0, 0.3), Cell(300, 60, 5.0, 0.6, 5, 0.2)]
SHARES = (0.8, 0.9)
MOST = 0.05


def measure_promises(cell: Cell, draws: int, shares: tuple[float, ...] = SHARES) -> dict[float, tuple[float, float]]:
    """By share: in how many of the draws the true agreement of what is accepted lies below it, and how much is accepted.

    The whole way: maps, thresholds and promises are made of the same labels.
    """
    rng, ranks = np.random.default_rng(13), np.arange(cell.levels) / (cell.levels - 1)
    tilt = np.exp(cell.skill * (ranks - 0.5))
    chances = np.array([1 / tilt / (1 / tilt).sum(), tilt / tilt.sum()])
    group = np.arange(cell.labels) // cell.size
    known = [[item(n, bool(side), group=str(group[n])) for n in range(cell.labels)] for side in (0, 1)]
    mass = np.array([[1 - cell.rate], [cell.rate]]) * chances
    broken, covered = dict.fromkeys(shares, 0), dict.fromkeys(shares, 0.0)
    for _ in range(draws):
        labels = (rng.random(cell.labels) < cell.rate).astype(int)
        at = (chances.cumsum(1)[labels] < rng.random((cell.labels, 1))).sum(1)
        if cell.alike:  # an item is as the first of its group with a chance of the root of likeness
            source = np.where(rng.random(cell.labels) < cell.alike**0.5, group * cell.size, np.arange(cell.labels))
            labels, at = labels[source], at[source]
        drawn = LabelledSet(tuple([known[label][n] for n, label in enumerate(labels)]), {}, "s")
        raw = {one.key: (float(ranks[n]),) for one, n in zip(drawn.items, at, strict=True)}
        judge = JudgePredictions(Binding("j", "0" * 64, "m"), "c", raw)
        bench = build_bench(drawn, judge, replace(QUICK, guarantee=None, folds=2, reported_shares=shares))
        assert bench is not None
        for share in shares:
            right, total = _accept(bench, share, ranks, mass)
            covered[share] += total
            broken[share] += total > 0 and right / total < share - 1e-9
    return {share: (broken[share] / draws, covered[share] / draws) for share in shares}


def _accept(bench: Bench, share: float, ranks: Floats, mass: Floats) -> tuple[float, float]:
    """The mass of what is accepted rightly, and of all that is accepted."""
    served = bench.served
    taken = mass * np.array([served.promises[share].accepts(float(rank)) for rank in ranks])
    passes = np.array([served.calibrator.apply(float(rank)) >= served.threshold for rank in ranks])
    return float(taken[1][passes].sum() + taken[0][~passes].sum()), float(taken.sum())


@pytest.mark.parametrize("cell", SOME, ids=str)
def test_the_promise_is_kept(cell: Cell) -> None:
    ((broken, covered),) = measure_promises(cell, 30, (0.8,)).values()
    assert broken <= MOST + 2 * (MOST * (1 - MOST) / 30) ** 0.5
    assert covered > 0


@pytest.mark.chaos
@pytest.mark.parametrize("cell", EVERY, ids=str)
def test_the_promise_is_kept_anywhere(cell: Cell) -> None:
    """108 settings at two shares, 400 draws each; 36 of them without groups."""
    most = MOST + 2 * (MOST * (1 - MOST) / 400) ** 0.5
    found = measure_promises(cell, 400)
    for share, (broken, covered) in found.items():
        print(tuple(cell), f"{share}: broken {broken:.4f}, covered {covered:.3f}")  # noqa: T201 (for the docs)
    assert not {share: one for share, one in found.items() if one[0] > most}


def two_judges(count: int = 1000) -> tuple[LabelledSet, list[Prediction]]:
    """One that is sure of half of the items, and right there; one that costs ten times as much and is right of the rest."""
    rng = random.Random(4)  # noqa: S311
    items, said = [], list[Prediction]()
    for n in range(count):
        label, easy = rng.random() < 0.5, n % 2 == 0
        items.append(item(n, label, group=str(n)))
        cheap = (0.95 if label else 0.05) if easy else rng.choice((0.4, 0.6))
        dear = 0.9 if label == (rng.random() < 0.97) else 0.1
        for model, raw, cost in (("cheap", cheap, 0.001), ("dear", dear, 0.01)):
            said.append(Prediction(id=items[-1].id, criterion="c", raw=raw, model=model, cost_usd=cost))
    return build_labelled_set(enumerate(items, 1), source="s"), said


def test_no_threshold_is_a_fit_that_accepts_nothing() -> None:
    run = calibrate(*drawn(200), QUICK)
    assert run.fits[0].guarantee == Guarantee(share=0.9)
    assert run.fits[0].is_unsure(0.5, 0.5)
    promise = next(one for one in run.judges[0].promises if one.guarantee.share == 0.9)
    assert (promise.coverage.value, promise.agreement.value, promise.n) == (0.0, None, 0)


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
    (judge,) = run_judge("as it is")[0].judges

    def look_at(number: int, look: int) -> Certificate:
        failures = [replace(one, id=f"f{one.id}", label=False, passed=False) for one in rows(99, 99)]
        side = replace(judge, items=(*rows(number, number, size=size), *failures))
        return certify([side] * judges, tpr=0.9, tnr=0.9, look=look, made=DAY)[judge.fit.id]

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
    (judge,) = run_judge("as it is")[0].judges
    alone = certify([judge], tpr=0.6, tnr=0.6, look=1, made=DAY)[judge.fit.id]
    assert alone.passes.low == alone.passes.low_in_all
    again = certify([judge], tpr=0.6, tnr=0.6, look=2, made=DAY)[judge.fit.id]
    assert (alone.error, again.error, again.labels == alone.labels) == (0.05, 0.025, True)
    assert again.passes.low < alone.passes.low
    (other,) = run_judge("inverted")[0].judges
    both = certify([judge, other], tpr=0.6, tnr=0.6, look=1, made=DAY)
    assert both[judge.fit.id].passes.low == alone.passes.low
    assert both[judge.fit.id].passes.low_in_all == again.passes.low
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
