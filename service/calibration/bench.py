"""One judge on one criterion: a map fitted to all its labels, and for each item a map that has not seen it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from typing import NamedTuple

from service.calibration.figures import FigureRow, Figures, read_metrics
from service.calibration.fitting import (
    calibrate_tally,
    choose_band,
    choose_method,
    choose_threshold,
    explain_too_few,
    fit_map,
)
from service.calibration.guarantees import VerdictItem, find_guarantees
from service.calibration.labels import Key, LabelledItem, LabelledSet, find_origin
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions
from service.calibration.splits import assign_folds, names_split, read_split
from service.core.judging.fits import Binding, Calibrator, Fit, Guarantee, Method, Origin
from service.stats.tallies import LabelTally, auroc, build_tally

RawValues = Mapping[Key, tuple[float, ...]]
INNER_FOLDS = 3
"""Folds of the fitted items, so that a jury's guarantee is tested on items that had no part in its weights."""
Rescore = Callable[[Sequence[LabelledItem]], RawValues]
"""Computes the raw values of all items from what is learned on these items: a jury learns its weights."""


class FittedMap(NamedTuple):
    """The map, threshold, band and guarantees fitted to a judge's labels."""

    calibrator: Calibrator
    threshold: float
    """The least calibrated value that passes."""
    band: tuple[float, float] | None
    """The calibrated values that go to a human, where nothing is guaranteed."""
    promises: Mapping[float, Guarantee]
    """By share of agreement: which verdicts are accepted so that this share of them agrees."""

    def map_value(self, raw: float) -> float:
        """Return the calibrated value of a raw one."""
        return self.calibrator.apply(raw).value

    def decides(self, value: float) -> bool:
        """Whether a calibrated value lies outside the band."""
        return self.band is None or not self.band[0] <= value < self.band[1]


class HeldOutFold(NamedTuple):
    """Items with the map that was fitted without them."""

    fitted: FittedMap
    items: tuple[LabelledItem, ...]
    raw: RawValues

    def list_held_out(self) -> list[tuple[Key, tuple[float, ...]]]:
        """List the raw values of its items."""
        return [(item.key, self.raw[item.key]) for item in self.items]


class HeldOutValue(NamedTuple):
    """A held-out item under the map that has not seen it."""

    raw: float
    value: float
    passed: bool
    decided: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge with its items, the map that is served, and the value of each held-out item."""

    name: str
    binding: Binding
    criterion: str
    labels: LabelledSet
    items: tuple[LabelledItem, ...]
    """The items of the criterion that the judge gave an answer for."""
    raw: RawValues
    fitted: tuple[LabelledItem, ...]
    """The items that the served map was fitted to."""
    method: Method
    served: FittedMap
    folds: tuple[HeldOutFold, ...]
    given: bool
    """Whether the items themselves say which are held out."""
    values: Mapping[Key, HeldOutValue]
    """The values of the held-out items."""
    reasons: Mapping[Key, str] = field(default_factory=dict[Key, str])
    costs: Mapping[Key, float] = field(default_factory=dict[Key, float])
    """The cost of answers in dollars, where known."""
    recorded: JudgePredictions | None = None
    """The predictions it was built from, along with `rescore`."""
    rescore: Rescore | None = None

    @property
    def held_out(self) -> list[LabelledItem]:
        """The items that figures are computed on: all of them, unless the items say which are held out."""
        return [item for item in self.items if item.key in self.values]

    def get_value(self, item: LabelledItem) -> float:
        """Return the calibrated value of the first answer on a held-out item."""
        return self.values[item.key].value

    def build_rows(self, *, among: Collection[Key] | None = None) -> list[FigureRow]:
        """Build figure rows of the held-out items, all or those with a key in `among`, with calibrated values."""
        return [
            FigureRow(item.group, item.stratum, held_out_value.value, item.passes, held_out_value.passed)
            for item in self.held_out
            if (among is None or item.key in among) and (held_out_value := self.values[item.key])
        ]

    def build_raw_rows(self, threshold: float) -> list[FigureRow]:
        """Build figure rows of the held-out items with raw values, which pass from `threshold` upwards."""
        raw_values = [(item, self.values[item.key].raw) for item in self.held_out]
        return [FigureRow(item.group, item.stratum, raw, item.passes, raw >= threshold) for item, raw in raw_values]

    def list_accepted(self, share: float) -> frozenset[Key]:
        """List the held-out items whose verdicts are accepted for this share of agreement, by maps that have not seen them."""
        accepted = [(fold.fitted.promises[share], fold) for fold in self.folds]
        return frozenset(
            [item.key for one, fold in accepted for item in fold.items if one.accepts(fold.raw[item.key][0])]
        )

    def list_left(self, share: float) -> frozenset[Key]:
        """List the items whose verdicts are not accepted, by the served map for items that are only fitted."""
        accepted, served = self.list_accepted(share), self.served.promises[share]
        fitted = {item.key for item in self.items if item.key not in self.values}
        accepted_fitted = {key for key in fitted if served.accepts(self.raw[key][0])}
        return frozenset({item.key for item in self.items} - accepted - accepted_fitted)

    def agrees(self, item: LabelledItem) -> bool:
        """Whether the verdict on a held-out item matches the label."""
        return self.values[item.key].passed is item.passes

    @property
    def price(self) -> float | None:
        """The mean cost of an answer in dollars; None unless it is known for every item."""
        prices = [self.costs[item.key] for item in self.items if item.key in self.costs]
        return sum(prices) / len(prices) if len(prices) == len(self.items) else None

    @property
    def skill(self) -> float:
        """The AUROC on the fitted items, by which the best judge is chosen."""
        return auroc(tally_items(self.fitted, self.raw)) or 0.0

    @property
    def origin(self) -> Origin:
        """The least trustworthy origin among its labels."""
        return find_origin(self.items)

    @property
    def calibrated(self) -> bool:
        """Whether its values may be called calibrated."""
        return not self.why

    @property
    def why(self) -> str:
        """Why its values may not be called calibrated; empty where they may."""
        if few := explain_too_few(self.fitted):
            return few
        if self.origin == "constructed":
            return "its labels are constructed, not human"
        return "its value was left as it is" if self.method == "identity" else ""


def tally_items(items: Sequence[LabelledItem], raw: RawValues) -> LabelTally:
    """Tally the first answers."""
    return build_tally([raw[item.key][0] for item in items], [item.passes for item in items])


def build_bench(
    labels: LabelledSet,
    recorded: JudgePredictions,
    options: ReportOptions,
    rescore: Rescore | None = None,
    *,
    left: Collection[Key] | None = None,
    stages: int = 1,
) -> Bench | None:
    """Fit the judge's maps; None where it has no items to fit or none to hold out.

    `left`: the items that earlier judges of a cascade leave to this one, on which its guarantees are tested; None: all.
    `stages`: the number of judges in the cascade, whose guarantees must hold together.
    """
    labelled = [item for item in labels.items if item.criterion == recorded.criterion]
    items = tuple([item for item in labelled if item.key in recorded.raw])
    fitting = _Fitting(options, recorded.raw, rescore, left, stages)
    # All labelled items are split, so that judges with missing answers are held out on the same ones.
    given = names_split(labelled)
    parts = _list_given(labelled, items) if given else _list_folds(labelled, items, options.seed, options.folds)
    if not parts:
        return None
    fitted = parts[0][0] if given else items
    method = choose_method(fitted, options.method)
    folds = tuple([_fit_fold(method, part, fitting) for part in parts])
    tested = fitting.hold_out(fitted) if given else {key: one for fold in folds for key, one in fold.list_held_out()}
    return Bench(
        name=recorded.name,
        binding=recorded.binding,
        criterion=recorded.criterion,
        labels=labels,
        items=items,
        raw=recorded.raw,
        fitted=fitted,
        method=method,
        served=_fit(method, fitted, fitting.learn(fitted), fitting, tested),
        folds=folds,
        given=given,
        values={key: found for fold in folds for key, found in _hold_out(fold)},
        reasons=recorded.reasons,
        costs=recorded.costs,
        recorded=recorded,
        rescore=rescore,
    )


def rebuild_bench(bench: Bench, options: ReportOptions, left: Collection[Key] | None, stages: int) -> Bench:
    """Fit the same judge again as a stage of a cascade; `left` and `stages` as in `build_bench`."""
    if bench.recorded is None:
        return bench
    return build_bench(bench.labels, bench.recorded, options, bench.rescore, left=left, stages=stages) or bench


class _Fitting(NamedTuple):
    """How maps are fitted."""

    options: ReportOptions
    raw: RawValues
    rescore: Rescore | None
    left: Collection[Key] | None
    stages: int = 1

    def learn(self, items: Sequence[LabelledItem]) -> RawValues:
        """Compute the raw values of all items from what is learned on these."""
        return self.raw if self.rescore is None else self.rescore(items)

    def hold_out(self, items: Sequence[LabelledItem]) -> RawValues:
        """Compute the raw values of these items, each from what is learned on the others."""
        if self.rescore is None:
            return self.raw
        parts = _list_folds(items, items, self.options.seed, INNER_FOLDS)
        return {
            item.key: raw[item.key]
            for fitted, held_out in parts
            for raw in (self.rescore(fitted),)
            for item in held_out
        }


Sides = tuple[tuple[LabelledItem, ...], tuple[LabelledItem, ...]]
"""The fitted items, and the held-out ones."""


def _list_given(labelled: Sequence[LabelledItem], items: Sequence[LabelledItem]) -> list[Sides]:
    split = read_split(labelled)
    sides = tuple([tuple([item for item in items if split[item.group] == side]) for side in ("fit", "test")])
    return [(sides[0], sides[1])] if all(sides) else []


def _list_folds(labelled: Sequence[LabelledItem], items: Sequence[LabelledItem], seed: str, folds: int) -> list[Sides]:
    fold = assign_folds(labelled, seed=seed, folds=folds)
    numbers = sorted({fold[item.group] for item in items})
    if len(numbers) < 2:
        return []
    return [
        (
            tuple([item for item in items if fold[item.group] != number]),
            tuple([item for item in items if fold[item.group] == number]),
        )
        for number in numbers
    ]


def _fit_fold(method: Method, sides: Sides, fitting: _Fitting) -> HeldOutFold:
    fitted, held_out = sides
    raw = fitting.learn(fitted)
    return HeldOutFold(_fit(method, fitted, raw, fitting, fitting.hold_out(fitted)), held_out, raw)


def _fit(
    method: Method, items: Sequence[LabelledItem], raw: RawValues, fitting: _Fitting, tested: RawValues
) -> FittedMap:
    """Fit the map to raw values, and find what it can guarantee on the `tested` ones."""
    tally = tally_items(items, raw)
    calibrator = fit_map(method, tally)
    calibrated = calibrate_tally(tally, calibrator)
    threshold = choose_threshold(calibrated)
    raws = [
        (item, tested[item.key][0])
        for item in items
        if item.key in tested and (fitting.left is None or item.key in fitting.left)
    ]
    values = {raw: calibrator.apply(raw).value for raw in {raw for _, raw in raws}}
    verdicts = [VerdictItem(raw, values[raw], values[raw] >= threshold, item.passes, item.group) for item, raw in raws]
    return FittedMap(
        calibrator,
        threshold,
        choose_band(calibrated, threshold, least=fitting.options.min_decided),
        find_guarantees(verdicts, fitting.options.shares, stages=fitting.stages),
    )


def _hold_out(fold: HeldOutFold) -> list[tuple[Key, HeldOutValue]]:
    fitted = fold.fitted
    values = [(item.key, fold.raw[item.key][0]) for item in fold.items]
    calibrated = [(key, raw, fitted.map_value(raw)) for key, raw in values]
    return [
        (key, HeldOutValue(raw, value, value >= fitted.threshold, fitted.decides(value)))
        for key, raw, value in calibrated
    ]


def refold(bench: Bench, options: ReportOptions, *, seed: str) -> list[HeldOutValue]:
    """Return what its items get when groups are dealt into folds by another seed."""
    fitting = _Fitting(replace(options, guarantee=None, reported_shares=()), bench.raw, bench.rescore, None)
    folds = [
        _fit_fold(bench.method, part, fitting) for part in _list_folds(bench.items, bench.items, seed, options.folds)
    ]
    values = {key: value for fold in folds for key, value in _hold_out(fold)}
    return [values[item.key] for item in bench.items]


def build_fit(
    bench: Bench, options: ReportOptions, *, after: Figures, humans: Figures | None, guarantee: Guarantee | None = None
) -> Fit:
    """Build the fit that is served, with its figures on held-out items and its guarantee."""
    raw = [bench.raw[item.key][0] for item in bench.fitted]
    return Fit(
        judge=bench.binding.judge,
        judge_digest=bench.binding.digest,
        model=bench.binding.model,
        assembly=bench.binding.assembly,
        evidence=bench.binding.evidence,
        route=bench.binding.route,
        weights=dict(bench.recorded.weights) if bench.recorded is not None else {},
        criterion=bench.criterion,
        method=bench.method,
        calibrator=bench.served.calibrator,
        origin=bench.origin,
        labels=len(bench.fitted),
        groups=len({item.group for item in bench.fitted}),
        enough=not explain_too_few(bench.fitted) and bench.method != "identity",
        domain=(min(raw), max(raw)),
        strata=_list_strata(bench.fitted),
        threshold=bench.served.threshold,
        review_band=bench.served.band if guarantee is None else None,
        guarantee=guarantee,
        statistics=read_metrics(after),
        humans=read_metrics(humans),
        data=_compute_digest(bench),
        seed=options.seed,
        libraries=list_libraries(),
        notes=(bench.why,) if bench.why else (),
        made=options.made,
    )


def _list_strata(items: Sequence[LabelledItem]) -> tuple[str, ...]:
    strata = {item.stratum for item in items}
    return () if "" in strata else tuple(sorted(strata))


def list_libraries() -> dict[str, str]:
    """Return the versions of the libraries that figures and fits were made with."""
    return {name: version(name) for name in ("numpy", "scipy")}


def _compute_digest(bench: Bench) -> str:
    """Return the sha256 of the items and the judge's answers, in the order of their keys."""
    rows = [[item.model_dump(mode="json"), list(bench.raw[item.key])] for item in bench.items]
    return sha256(json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
