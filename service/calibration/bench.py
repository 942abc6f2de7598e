"""One judge on one criterion: a map fitted to all its labels, and for each item a map that has not seen it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.calibration.figures import HeldOutItem
from service.calibration.fitting import (
    calibrate_tally,
    choose_band,
    choose_method,
    choose_threshold,
    explain_too_few,
    fit_map,
)
from service.calibration.labels import Key, LabelledItem, LabelledSet, find_origin
from service.calibration.options import ReportOptions, find_guarantees
from service.calibration.predictions import JudgePredictions
from service.calibration.splits import assign_folds, names_split, read_split
from service.core.judging.fits.certificate import Guarantee
from service.core.judging.fits.fit import Method, Origin
from service.core.judging.fits.maps import Calibrator
from service.stats.tallies import LabelTally, build_tally

RawValues = Mapping[Key, tuple[float, ...]]
Rescore = Callable[[Sequence[LabelledItem]], RawValues]
"""Computes the raw values of all items from what is learned on these items: a jury learns its weights."""
Sides = tuple[tuple[LabelledItem, ...], tuple[LabelledItem, ...]]
"""The fitted items, and the held-out ones."""
INNER_FOLDS = 3
"""Folds of the fitted items, so that a jury's guarantee is tested on items that had no part in its weights."""


class FittedMap(NamedTuple):
    """The map, threshold, band and guarantees fitted to a judge's labels."""

    calibrator: Calibrator
    threshold: float
    """The least calibrated value that passes."""
    band: tuple[float, float] | None
    """The calibrated values that go to a human, where nothing is guaranteed."""
    promises: Mapping[float, Guarantee]
    """By share of agreement: which verdicts are accepted so that this share of them agrees."""


class HeldOutFold(NamedTuple):
    """Items with the map that was fitted without them."""

    fitted: FittedMap
    items: tuple[LabelledItem, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge with its items, the map that is served, and the value of each held-out item."""

    recorded: JudgePredictions
    labels: LabelledSet
    items: tuple[LabelledItem, ...]
    """The items of the criterion that the judge gave an answer for."""
    fitted: tuple[LabelledItem, ...]
    """The items that the served map was fitted to."""
    method: Method
    served: FittedMap
    folds: tuple[HeldOutFold, ...]
    given: bool
    """Whether the items themselves say which are held out."""
    values: Mapping[Key, HeldOutItem]
    """The held-out items, as judged by the maps that have not seen them, in the order of `items`."""

    @property
    def name(self) -> str:
        """The name of the judge in reports."""
        return self.recorded.name

    @property
    def raw(self) -> RawValues:
        """Its raw values."""
        return self.recorded.raw

    @property
    def held_out(self) -> list[LabelledItem]:
        """The items that figures are computed on: all of them, unless the items say which are held out."""
        return [item for item in self.items if item.key in self.values]

    def list_accepted(self, share: float) -> list[HeldOutItem]:
        """List the held-out items whose verdicts are accepted for this share of agreement, by maps that have not seen them."""
        rows = [(fold.fitted.promises[share], self.values[item.key]) for fold in self.folds for item in fold.items]
        return [row for promise, row in rows if promise.accepts(row.raw)]

    @property
    def price(self) -> float | None:
        """The mean cost of an answer in dollars; None unless it is known for every item."""
        prices = [self.recorded.costs[item.key] for item in self.items if item.key in self.recorded.costs]
        return sum(prices) / len(prices) if len(prices) == len(self.items) else None

    @property
    def origin(self) -> Origin:
        """The least trustworthy origin among its labels."""
        return find_origin(self.items)

    @property
    def why(self) -> str:
        """Why its values may not be called calibrated; empty where they may."""
        if few := explain_too_few(self.fitted):
            return few
        if self.origin == "constructed":
            return "its labels are constructed, not human"
        if self.origin == "weak":
            return "its labels are thumbs and corrections of users, not labels of this criterion"
        return "its value was left as it is" if self.method == "identity" else ""


def build_bench(
    labels: LabelledSet, recorded: JudgePredictions, options: ReportOptions, rescore: Rescore | None = None
) -> Bench | None:
    """Fit the judge's maps; None where it has no items to fit or none to hold out."""
    labelled = [item for item in labels.items if item.criterion == recorded.criterion]
    items = tuple([item for item in labelled if item.key in recorded.raw])
    # All labelled items are split, so that judges with missing answers are held out on the same ones.
    given = names_split(labelled)
    parts = _list_given(labelled, items) if given else _list_folds(labelled, items, options.seed, options.folds)
    if not parts:
        return None
    fitted = parts[0][0] if given else items
    method = choose_method(fitted, options.method)

    def learn(items: Sequence[LabelledItem]) -> RawValues:
        return recorded.raw if rescore is None else rescore(items)

    def hold_out(items: Sequence[LabelledItem]) -> RawValues:
        """Compute the raw values of these items, each from what is learned on the others."""
        if rescore is None:
            return recorded.raw
        inner = _list_folds(items, items, options.seed, INNER_FOLDS)
        return {item.key: raw[item.key] for part, rest in inner for raw in (rescore(part),) for item in rest}

    def fit(items: Sequence[LabelledItem], raw: RawValues, tested: RawValues) -> FittedMap:
        """Fit the map to raw values, and find what it can guarantee on the `tested` ones."""
        tally = tally_items(items, raw)
        calibrator = fit_map(method, tally)
        calibrated = calibrate_tally(tally, calibrator)
        threshold = choose_threshold(calibrated)
        kept = [item for item in items if item.key in tested]
        values = {raw: calibrator.apply(raw) for raw in {tested[item.key][0] for item in kept}}
        pairs = [(item, tested[item.key][0]) for item in kept]
        verdicts = [
            HeldOutItem(one.id, one.group, one.passes, at, values[at], values[at] >= threshold) for one, at in pairs
        ]
        promises = find_guarantees(verdicts, options.shares)
        return FittedMap(calibrator, threshold, choose_band(calibrated, threshold), promises)

    folds: list[HeldOutFold] = []
    held_out: dict[Key, HeldOutItem] = {}
    for fitted_part, rest in parts:
        raw = learn(fitted_part)
        fitted_map = fit(fitted_part, raw, hold_out(fitted_part))
        folds.append(HeldOutFold(fitted_map, rest))
        held_out |= {item.key: _hold_out(fitted_map, raw[item.key][0], item) for item in rest}
    tested = hold_out(fitted) if given else {key: (one.raw,) for key, one in held_out.items()}
    return Bench(
        recorded=recorded,
        labels=labels,
        items=items,
        fitted=fitted,
        method=method,
        served=fit(fitted, learn(fitted), tested),
        folds=tuple(folds),
        given=given,
        values={item.key: held_out[item.key] for item in items if item.key in held_out},
    )


def _hold_out(fitted: FittedMap, raw: float, item: LabelledItem) -> HeldOutItem:
    value = fitted.calibrator.apply(raw)
    decided = fitted.band is None or not fitted.band[0] <= value < fitted.band[1]
    passed = value >= fitted.threshold
    return HeldOutItem(item.id, item.group, item.passes, raw, value, passed, item.stratum, decided)


def tally_items(items: Sequence[LabelledItem], raw: RawValues) -> LabelTally:
    """Tally the first answers."""
    return build_tally([raw[item.key][0] for item in items], [item.passes for item in items])


def _list_given(labelled: Sequence[LabelledItem], items: Sequence[LabelledItem]) -> list[Sides]:
    split = read_split(labelled)
    fitted, rest = (tuple([item for item in items if split[item.group] == side]) for side in ("fit", "test"))
    return [(fitted, rest)] if fitted and rest else []


def _list_folds(labelled: Sequence[LabelledItem], items: Sequence[LabelledItem], seed: str, folds: int) -> list[Sides]:
    fold = assign_folds(labelled, seed=seed, folds=folds)
    numbers, sides = sorted({fold[item.group] for item in items}), list[Sides]()
    for number in numbers if len(numbers) > 1 else ():
        fitted = tuple([item for item in items if fold[item.group] != number])
        sides.append((fitted, tuple([item for item in items if fold[item.group] == number])))
    return sides
