"""The report on one judge from its held-out items, each under the map that has not seen it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import numpy as np

from service.calibration.bench import Bench, build_fit, refold
from service.calibration.diagnostics import (
    Disagreement,
    LengthBias,
    Retest,
    RetestItem,
    build_disagreement,
    find_largest_disagreements,
    measure_length_bias,
    measure_retest,
)
from service.calibration.figures import (
    FigureRow,
    Figures,
    Measure,
    compute_human_figures,
    compute_judge_figures,
    select_agreed,
)
from service.calibration.first_errors import JudgedStep, score_first_errors
from service.calibration.fitting import build_coverage_curve
from service.calibration.guarantees import AcceptedItem, measure_share, measure_shares
from service.calibration.labels import Key, LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.results import (
    HeldOutItem,
    HeldOutSlice,
    HistogramBar,
    JudgeReport,
    Promise,
    ReviewBand,
    Spread,
)
from service.core.judging.fits import Fit
from service.stats.rates import RatePart
from service.stats.tallies import LabelTally, build_reliability, build_tally, ece, ece_by_chance

HISTOGRAM_BARS = 20


def build_judge_report(
    bench: Bench, options: ReportOptions, *, after_fit: str | None = None
) -> tuple[JudgeReport, Fit]:
    """Build the report on the judge from its held-out items, and the fit with the same figures.

    `after_fit`: the id of the fit that decides before it in a cascade.
    """
    test, rows, raw_rows = bench.held_out, bench.build_rows(), bench.build_raw_rows(options.own_threshold)
    after = compute_judge_figures(rows, options.resampling)
    humans = compute_human_figures(test, options.resampling)
    served_guarantee = None if options.guarantee is None else bench.served.promises[options.guarantee]
    guarantee = served_guarantee and served_guarantee.model_copy(update={"after": after_fit})
    fit = build_fit(bench, options, after=after, humans=humans, guarantee=guarantee)
    calibrated_tally = _tally(rows)
    report = JudgeReport(
        name=bench.name,
        criterion=bench.criterion,
        origin=bench.origin,
        judge=bench.binding.judge,
        judge_digest=bench.binding.digest,
        model=bench.binding.model,
        fit_id=fit.id,
        calibrated=bench.calibrated,
        method=bench.method,
        fitted=fit.labels,
        held_out=len(test),
        fitted_groups=fit.groups,
        held_out_groups=after.groups,
        missing=sum(item.criterion == bench.criterion for item in bench.labels.items) - len(bench.items),
        threshold=bench.served.threshold,
        own_threshold=options.own_threshold,
        own=compute_judge_figures(raw_rows, options.resampling),
        after=after,
        humans=humans,
        where_humans_agree=_compute_agreed_figures(bench, test, options),
        slices=tuple(_build_slices(bench, test, options)),
        table_before=build_reliability(_tally(raw_rows)),
        table_after=build_reliability(calibrated_tally),
        histogram=_build_histogram(rows),
        curve=build_coverage_curve(_list_curve_parts(bench)),
        review_band=_build_review_band(bench),
        retest=_measure_retest(bench, options),
        length=_measure_length_bias(bench, test),
        worst=tuple(_list_worst(bench, test, options)),
        ece_by_chance=ece_by_chance(calibrated_tally),
        ece_over_splits=_measure_over_splits(bench, options),
        items=tuple([_build_held_out(bench, item) for item in test]),
        least_decided=options.min_decided,
        promises=tuple([measure_promise(bench, share, options) for share in options.shares]),
        guarantee=options.guarantee,
        cost_usd=bench.price,
        why=bench.why,
        first_error=_measure_first_errors(bench, test, options),
    )
    return report, fit


def _build_held_out(bench: Bench, item: LabelledItem) -> HeldOutItem:
    held_out_value = bench.values[item.key]
    return HeldOutItem(
        item.id, item.group, item.passes, held_out_value.raw, held_out_value.value, held_out_value.passed
    )


def _list_curve_parts(bench: Bench) -> list[tuple[LabelTally, float]]:
    return [
        (_tally(bench.build_rows(among={item.key for item in one.items})), one.fitted.threshold) for one in bench.folds
    ]


def _tally(rows: Sequence[FigureRow]) -> LabelTally:
    return build_tally([row.value for row in rows], [row.label for row in rows])


def _compute_agreed_figures(bench: Bench, test: Sequence[LabelledItem], options: ReportOptions) -> Figures | None:
    keys = {item.key for item in select_agreed(test)}
    return compute_judge_figures(bench.build_rows(among=keys), options.resampling) if keys else None


def _build_slices(bench: Bench, test: Sequence[LabelledItem], options: ReportOptions) -> Iterator[HeldOutSlice]:
    """Yield the held-out items by step and by family, where there are several."""
    sides: tuple[Literal["step", "family"], ...] = ("step", "family")
    for by in sides:
        names = sorted({name for item in test if (name := getattr(item, by))})
        for name in names if len(names) > 1 else ():
            items = [item for item in test if getattr(item, by) == name]
            rows = bench.build_rows(among={item.key for item in items})
            figures = compute_judge_figures(rows, options.resampling)
            humans = compute_human_figures(items, options.resampling)
            yield HeldOutSlice(by, name, figures, humans, _measure_first_errors(bench, items, options))


def _score_runs(bench: Bench, items: Sequence[LabelledItem]) -> dict[str, RatePart]:
    """For each run among held-out items, score whether its first wrong step is named; empty where items are not steps."""
    return score_first_errors(
        [
            JudgedStep(item.run, item.position, item.group, bench.values[item.key].passed, item.passes)
            for item in items
            if item.run
        ]
    )


def _measure_first_errors(bench: Bench, items: Sequence[LabelledItem], options: ReportOptions) -> Measure | None:
    scored_runs = list(_score_runs(bench, items).values())
    return measure_share(scored_runs, options.resampling) if scored_runs else None


def _build_histogram(rows: Sequence[FigureRow]) -> tuple[HistogramBar, ...]:
    edges = np.linspace(0, 1, HISTOGRAM_BARS + 1)
    passing, failing = (np.histogram([r.value for r in rows if r.label is side], edges)[0] for side in (True, False))
    return tuple(
        [
            HistogramBar(float(edges[at]), float(edges[at + 1]), int(passing[at]), int(failing[at]))
            for at in range(HISTOGRAM_BARS)
        ]
    )


def _build_review_band(bench: Bench) -> ReviewBand | None:
    if bench.served.band is None:
        return None
    decided = [(value.passed is item.passes) for item in bench.held_out if (value := bench.values[item.key]).decided]
    accuracy = sum(decided) / len(decided) if decided else None
    return ReviewBand(bench.served.band, len(decided) / len(bench.held_out), accuracy)


def measure_promise(bench: Bench, share: float, options: ReportOptions) -> Promise:
    """Measure what is accepted of held-out items for this share of agreement, and how far it agrees."""
    accepted = bench.list_accepted(share)
    items = [AcceptedItem(item.group, item.key in accepted, bench.agrees(item)) for item in bench.held_out]
    coverage, agreement = measure_shares(items, options.resampling)
    passing, failing = (_measure_side(bench, accepted, options, passed=passed) for passed in (True, False))
    return Promise(bench.served.promises[share], coverage, agreement, len(accepted), passing, failing)


def _measure_side(bench: Bench, accepted: Collection[Key], options: ReportOptions, *, passed: bool) -> Measure:
    side_items = [one for one in bench.held_out if one.key in accepted and bench.values[one.key].passed is passed]
    return measure_share([RatePart(one.group, float(bench.agrees(one))) for one in side_items], options.resampling)


def _measure_retest(bench: Bench, options: ReportOptions) -> Retest | None:
    retested = [RetestItem(item.group, tuple(map(bench.served.map_value, bench.raw[item.key]))) for item in bench.items]
    return measure_retest(retested, bench.served.threshold, interval=options.resampling.draws > 0)


def _measure_length_bias(bench: Bench, test: Sequence[LabelledItem]) -> LengthBias | None:
    answered = [item for item in test if item.answer is not None]
    return measure_length_bias(
        [len(item.answer or "") for item in answered],
        [bench.get_value(item) for item in answered],
        [item.passes for item in answered],
    )


def _differs(bench: Bench, item: LabelledItem) -> bool:
    return bench.values[item.key].passed is not item.passes


def _list_worst(bench: Bench, test: Sequence[LabelledItem], options: ReportOptions) -> Iterator[Disagreement]:
    differing = [(item, bench.get_value(item)) for item in test if _differs(bench, item)]
    for item in find_largest_disagreements(differing, options.max_disagreements):
        yield build_disagreement(
            item,
            bench.labels.lines[item.key],
            raw=bench.values[item.key].raw,
            value=bench.get_value(item),
            reason=bench.reasons.get(item.key, ""),
        )


def _measure_over_splits(bench: Bench, options: ReportOptions) -> Spread | None:
    """Measure the calibration error with the same groups dealt out by other seeds: 0, 1, 2 and so on."""
    seeds = [str(seed) for seed in range(0 if bench.given else options.extra_splits)]
    errors = [_compute_error(bench, options, seed) for seed in seeds]
    if not errors:
        return None
    low, median, high = np.percentile(errors, [10, 50, 90]).tolist()
    return Spread(len(errors), low, median, high)


def _compute_error(bench: Bench, options: ReportOptions, seed: str) -> float:
    values = refold(bench, options, seed=seed)
    return ece(build_tally([one.value for one in values], [item.passes for item in bench.items])) or 0.0
