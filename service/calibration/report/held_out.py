"""What the held-out items say of a judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from service.calibration.bench import Bench, build_fit, tally_items
from service.calibration.diagnostics import (
    AskedItem,
    Disagreement,
    LengthBias,
    Retest,
    build_disagreement,
    find_furthest,
    measure_length_bias,
    measure_retest,
)
from service.calibration.figures import FigureRow, Figures, compute_human_figures, compute_judge_figures, select_agreed
from service.calibration.fitting import (
    build_coverage_curve,
    build_verdicts,
    calibrate_tally,
    choose_method,
    compute_decided_share,
    fit_map,
)
from service.calibration.labels import LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.results import AbstentionBand, HeldOutItem, HeldOutSlice, HistogramBar, JudgeReport, Spread
from service.calibration.splits import split_groups
from service.core.judging.fits import Fit
from service.stats.tallies import LabelTally, build_reliability, ece, ece_by_chance, tally

BARS = 20


def build_judge_report(bench: Bench, options: ReportOptions) -> tuple[JudgeReport, Fit]:
    """What the held-out items say of the judge, and the fit with the same figures."""
    test, rows, raw_rows = bench.select_part("test"), bench.rows(), bench.rows(raw=True)
    after = compute_judge_figures(rows, bench.threshold, options.resampling)
    humans = compute_human_figures(test, options.resampling)
    fit = build_fit(bench, options, after=after, humans=humans)
    found = _tally(rows)
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
        threshold=bench.threshold,
        own_threshold=options.own_threshold,
        own=compute_judge_figures(raw_rows, options.own_threshold, options.resampling),
        after=after,
        humans=humans,
        where_humans_agree=_compute_agreed_figures(bench, test, options),
        slices=tuple(_build_slices(bench, test, options)),
        table_before=build_reliability(_tally(raw_rows)),
        table_after=build_reliability(found),
        histogram=_build_histogram(rows),
        curve=build_coverage_curve(found, bench.threshold),
        abstaining=_build_abstention(bench, found),
        retest=_measure_retest(bench, options),
        length=_measure_length_bias(bench, test),
        worst=tuple(_list_worst(bench, test, options)),
        ece_by_chance=ece_by_chance(found),
        ece_over_splits=_measure_over_splits(bench, options),
        items=tuple([_build_held_out(bench, item) for item in test]),
    )
    return report, fit


def _build_held_out(bench: Bench, item: LabelledItem) -> HeldOutItem:
    return HeldOutItem(item.id, item.group, item.passes, bench.raw[item.key][0], bench.value(item))


def _tally(rows: Sequence[FigureRow]) -> LabelTally:
    return tally([row.value for row in rows], [row.label for row in rows])


def _compute_agreed_figures(bench: Bench, test: Sequence[LabelledItem], options: ReportOptions) -> Figures | None:
    keys = {item.key for item in select_agreed(test)}
    return compute_judge_figures(bench.rows(among=keys), bench.threshold, options.resampling) if keys else None


def _build_slices(bench: Bench, test: Sequence[LabelledItem], options: ReportOptions) -> Iterator[HeldOutSlice]:
    """The held-out items by step and by family, where there are several."""
    sides: tuple[Literal["step", "family"], ...] = ("step", "family")
    for by in sides:
        names = sorted({name for item in test if (name := getattr(item, by))})
        for name in names if len(names) > 1 else ():
            items = [item for item in test if getattr(item, by) == name]
            rows = bench.rows(among={item.key for item in items})
            figures = compute_judge_figures(rows, bench.threshold, options.resampling)
            yield HeldOutSlice(by, name, figures, compute_human_figures(items, options.resampling))


def _build_histogram(rows: Sequence[FigureRow]) -> tuple[HistogramBar, ...]:
    edges = np.linspace(0, 1, BARS + 1)
    passing, failing = (np.histogram([r.value for r in rows if r.label is side], edges)[0] for side in (True, False))
    return tuple(
        [HistogramBar(float(edges[at]), float(edges[at + 1]), int(passing[at]), int(failing[at])) for at in range(BARS)]
    )


def _build_abstention(bench: Bench, found: LabelTally) -> AbstentionBand | None:
    if bench.band is None:
        return None
    decided = build_verdicts(found, bench.threshold, bench.band)
    return AbstentionBand(bench.band, compute_decided_share(found, bench.band), decided.accuracy)


def _measure_retest(bench: Bench, options: ReportOptions) -> Retest | None:
    asked = [AskedItem(item.group, tuple(map(bench.map_value, bench.raw[item.key]))) for item in bench.items]
    return measure_retest(asked, bench.threshold, interval=options.resampling.draws > 0)


def _measure_length_bias(bench: Bench, test: Sequence[LabelledItem]) -> LengthBias | None:
    written = [item for item in test if item.answer is not None]
    return measure_length_bias(
        [len(item.answer or "") for item in written],
        [bench.value(item) for item in written],
        [item.passes for item in written],
    )


def _differs(bench: Bench, item: LabelledItem) -> bool:
    return (bench.value(item) >= bench.threshold) is not item.passes


def _list_worst(bench: Bench, test: Sequence[LabelledItem], options: ReportOptions) -> Iterator[Disagreement]:
    differing = [(item, bench.value(item)) for item in test if _differs(bench, item)]
    for item in find_furthest(differing, options.worst):
        yield build_disagreement(
            item,
            bench.labels.lines[item.key],
            raw=bench.raw[item.key][0],
            value=bench.value(item),
            reason=bench.reasons.get(item.key, ""),
        )


def _measure_over_splits(bench: Bench, options: ReportOptions) -> Spread | None:
    """The calibration error when the same groups are split otherwise, by seeds 0, 1, 2 and so on."""
    free = [item.model_copy(update={"split": None}) for item in bench.items]
    errors = [
        error
        for seed in range(options.splits)
        if (error := _compute_error(bench, free, str(seed), options)) is not None
    ]
    if not errors:
        return None
    low, median, high = np.percentile(errors, [10, 50, 90]).tolist()
    return Spread(len(errors), low, median, high)


def _compute_error(bench: Bench, items: Sequence[LabelledItem], seed: str, options: ReportOptions) -> float | None:
    split = split_groups(items, seed=seed, share=options.share)
    fit = [item for item in items if split[item.group] == "fit"]
    test = [item for item in items if split[item.group] == "test"]
    if not fit or not test:
        return None
    calibrator = fit_map(choose_method(len(fit), options.method), tally_items(fit, bench.raw))
    return ece(calibrate_tally(tally_items(test, bench.raw), calibrator))
