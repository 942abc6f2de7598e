"""A stack of recorded judges, tried on held-out items against the best single judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from service.calibration.bench import Bench
from service.calibration.ensembles.stack_model import INNER_FOLDS, StackedItem, fit_stack
from service.calibration.figures import FigureRow, Measure, compute_human_figures, compute_judge_figures
from service.calibration.first_errors import JudgedStep, score_first_errors
from service.calibration.guarantees import measure_share
from service.calibration.labels import Key, LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.paired import compute_differences
from service.calibration.results import HeldOutSlice, StackReport
from service.calibration.splits import assign_folds
from service.stats.intervals import choose_difference
from service.stats.rates import PairedCase, RatePart
from service.stats.tallies import LabelTally, build_confusion_at, build_tally

OWN_THRESHOLD = 0.5
"""The raw value from which a single judge passes by itself."""


class StackedValue(NamedTuple):
    """The value of an item, and whether it passes."""

    value: float
    passed: bool


Values = Mapping[Key, StackedValue]


def build_stack(members: Sequence[Bench], options: ReportOptions) -> StackReport | None:
    """Build the stack on all items of the criterion, each scored by what was fitted without its group.

    None for fewer than two groups.
    """
    criterion = members[0].criterion
    items = [item for item in members[0].labels.items if item.criterion == criterion]
    if len({item.group for item in items}) < 2:
        return None
    stacked = _predict(members, items, options)
    by_judge = {bench.name: _read_own_verdicts(bench) for bench in members}
    best = max(by_judge, key=lambda name: (_compute_kappa(_list_rows(items, by_judge[name])) or 0.0, name))
    shared = [item for item in items if item.key in by_judge[best]]
    rows = [_list_rows(shared, values) for values in (by_judge[best], stacked)]
    verdicts = [[row._replace(value=float(row.passed)) for row in own] for own in rows]
    gain = compute_differences(verdicts[0], verdicts[1], {"kappa": (_read_kappa, _read_kappa)}, options.resampling)
    first_errors = [_score_runs(shared, values) for values in (by_judge[best], stacked)]
    return StackReport(
        criterion=criterion,
        members=tuple(by_judge),
        best=best,
        figures=compute_judge_figures(_list_rows(items, stacked), options.resampling),
        best_figures=compute_judge_figures(rows[0], options.resampling),
        kappa=gain["kappa"],
        first_error=_measure_first_errors(items, stacked, options),
        best_first_error=_measure_first_errors(shared, by_judge[best], options),
        first_error_gain=_compare_first_errors(first_errors[0], first_errors[1], options),
        families=tuple(_list_families(items, stacked, options)),
    )


def _predict(members: Sequence[Bench], items: Sequence[LabelledItem], options: ReportOptions) -> Values:
    """Return the probability that each item passes, from what was fitted without its group."""
    stacked_items = {item.key: _read_item(members, item) for item in items}
    fold = assign_folds(items, seed=options.seed, folds=options.folds)
    values_by_key: dict[Key, StackedValue] = {}
    for number in sorted(set(fold.values())):
        fitted = [item for item in items if fold[item.group] != number]
        held_out = [item for item in items if fold[item.group] == number]
        inner = assign_folds(fitted, seed=options.seed, folds=INNER_FOLDS)
        stack = fit_stack(
            [stacked_items[item.key] for item in fitted],
            [item.passes for item in fitted],
            [inner[item.group] for item in fitted],
        )
        values = stack.apply([stacked_items[item.key] for item in held_out]).tolist()
        values_by_key |= {
            item.key: StackedValue(value, value >= stack.threshold)
            for item, value in zip(held_out, values, strict=True)
        }
    return values_by_key


def _read_own_verdicts(bench: Bench) -> Values:
    return {
        key: StackedValue(held_out_value.raw, held_out_value.raw >= OWN_THRESHOLD)
        for key, held_out_value in bench.values.items()
    }


def _read_item(members: Sequence[Bench], item: LabelledItem) -> StackedItem:
    values = [one.raw.get(item.key) for one in members]
    return StackedItem(tuple([None if raw is None else raw[0] for raw in values]), item.family)


def _list_rows(items: Sequence[LabelledItem], values: Values) -> list[FigureRow]:
    kept = [(item, values[item.key]) for item in items if item.key in values]
    return [FigureRow(item.group, item.stratum, one.value, item.passes, one.passed) for item, one in kept]


def _compute_kappa(rows: Sequence[FigureRow]) -> float | None:
    return _read_kappa(build_tally([float(row.passed) for row in rows], [row.label for row in rows]))


def _read_kappa(tally: LabelTally) -> float | None:
    return build_confusion_at(tally, 1.0).kappa


def _score_runs(items: Sequence[LabelledItem], values: Values) -> dict[str, RatePart]:
    """For each run with a value for every step, score whether its first wrong step is named."""
    gaps = {item.run for item in items if item.key not in values}
    steps = [item for item in items if item.run and item.run not in gaps]
    return score_first_errors(
        [JudgedStep(one.run, one.position, one.group, values[one.key].passed, one.passes) for one in steps]
    )


def _measure_first_errors(items: Sequence[LabelledItem], values: Values, options: ReportOptions) -> Measure | None:
    scored_runs = list(_score_runs(items, values).values())
    return measure_share(scored_runs, options.resampling) if scored_runs else None


def _compare_first_errors(
    one: Mapping[str, RatePart], other: Mapping[str, RatePart], options: ReportOptions
) -> Measure | None:
    pairs = [
        PairedCase(one[name].group, one[name].hits, other[name].hits) for name in sorted(one.keys() & other.keys())
    ]
    if not pairs:
        return None
    gain = sum(pair.b - pair.a for pair in pairs) / len(pairs)
    return Measure(gain, *choose_difference(pairs)) if options.resampling.draws else Measure(gain)


def _list_families(items: Sequence[LabelledItem], values: Values, options: ReportOptions) -> Iterator[HeldOutSlice]:
    names = sorted({item.family for item in items})
    for name in names if len(names) > 1 else ():
        own = [item for item in items if item.family == name]
        figures = compute_judge_figures(_list_rows(own, values), options.resampling)
        humans = compute_human_figures(own, options.resampling)
        yield HeldOutSlice("family", name, figures, humans, _measure_first_errors(own, values, options))
