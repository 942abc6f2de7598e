"""What the held-out items say of a judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from service.calibrating.bench import Bench, fit_of, tallied
from service.calibrating.figures import Figures, Row, agreed, human_figures, judged_figures
from service.calibrating.fitting import calibrated_tally, coverage_curve, decided_share, fitted, method_for, verdicts
from service.calibrating.labels import LabelledItem
from service.calibrating.options import Options
from service.calibrating.results import Abstaining, HeldOut, HistogramBar, JudgeReport, Slice, Spread
from service.calibrating.signs import (
    Asked,
    Disagreement,
    LengthBias,
    Retest,
    disagreement,
    furthest,
    length_bias,
    retest,
)
from service.calibrating.splits import split_of
from service.core.calibrate import Fit
from service.stats.tallies import Tally, ece, ece_by_chance, reliability, tally

BARS = 20


def report_on(bench: Bench, options: Options) -> tuple[JudgeReport, Fit]:
    """What the held-out items say of the judge, and the fit with the same figures."""
    test, rows, raw_rows = bench.part("test"), bench.rows(), bench.rows(raw=True)
    after = judged_figures(rows, bench.threshold, options.resampling)
    humans = human_figures(test, options.resampling)
    fit = fit_of(bench, options, after=after, humans=humans)
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
        own=judged_figures(raw_rows, options.own_threshold, options.resampling),
        after=after,
        humans=humans,
        where_humans_agree=_agreed(bench, test, options),
        slices=tuple(_slices(bench, test, options)),
        table_before=reliability(_tally(raw_rows)),
        table_after=reliability(found),
        histogram=_histogram(rows),
        curve=coverage_curve(found, bench.threshold),
        abstaining=_abstaining(bench, found),
        retest=_retest(bench, options),
        length=_length(bench, test),
        worst=tuple(_worst(bench, test, options)),
        ece_by_chance=ece_by_chance(found),
        ece_over_splits=_over_splits(bench, options),
        items=tuple([_held_out(bench, item) for item in test]),
    )
    return report, fit


def _held_out(bench: Bench, item: LabelledItem) -> HeldOut:
    return HeldOut(item.id, item.group, item.passes, bench.raw[item.key][0], bench.value(item))


def _tally(rows: Sequence[Row]) -> Tally:
    return tally([row.value for row in rows], [row.label for row in rows])


def _agreed(bench: Bench, test: Sequence[LabelledItem], options: Options) -> Figures | None:
    keys = {item.key for item in agreed(test)}
    return judged_figures(bench.rows(among=keys), bench.threshold, options.resampling) if keys else None


def _slices(bench: Bench, test: Sequence[LabelledItem], options: Options) -> Iterator[Slice]:
    """The held-out items by step and by family, where there are several."""
    sides: tuple[Literal["step", "family"], ...] = ("step", "family")
    for by in sides:
        names = sorted({name for item in test if (name := getattr(item, by))})
        for name in names if len(names) > 1 else ():
            items = [item for item in test if getattr(item, by) == name]
            rows = bench.rows(among={item.key for item in items})
            figures = judged_figures(rows, bench.threshold, options.resampling)
            yield Slice(by, name, figures, human_figures(items, options.resampling))


def _histogram(rows: Sequence[Row]) -> tuple[HistogramBar, ...]:
    edges = np.linspace(0, 1, BARS + 1)
    passing, failing = (np.histogram([r.value for r in rows if r.label is side], edges)[0] for side in (True, False))
    return tuple(
        [HistogramBar(float(edges[at]), float(edges[at + 1]), int(passing[at]), int(failing[at])) for at in range(BARS)]
    )


def _abstaining(bench: Bench, found: Tally) -> Abstaining | None:
    if bench.band is None:
        return None
    decided = verdicts(found, bench.threshold, bench.band)
    return Abstaining(bench.band, decided_share(found, bench.band), decided.accuracy)


def _retest(bench: Bench, options: Options) -> Retest | None:
    asked = [Asked(item.group, tuple(map(bench.mapped, bench.raw[item.key]))) for item in bench.items]
    return retest(asked, bench.threshold, interval=options.resampling.draws > 0)


def _length(bench: Bench, test: Sequence[LabelledItem]) -> LengthBias | None:
    written = [item for item in test if item.answer is not None]
    return length_bias(
        [len(item.answer or "") for item in written],
        [bench.value(item) for item in written],
        [item.passes for item in written],
    )


def _differs(bench: Bench, item: LabelledItem) -> bool:
    return (bench.value(item) >= bench.threshold) is not item.passes


def _worst(bench: Bench, test: Sequence[LabelledItem], options: Options) -> Iterator[Disagreement]:
    differing = [(item, bench.value(item)) for item in test if _differs(bench, item)]
    for item in furthest(differing, options.worst):
        yield disagreement(
            item,
            bench.labels.lines[item.key],
            raw=bench.raw[item.key][0],
            value=bench.value(item),
            reason=bench.reasons.get(item.key, ""),
        )


def _over_splits(bench: Bench, options: Options) -> Spread | None:
    """The calibration error when the same groups are split otherwise, by seeds 0, 1, 2 and so on."""
    free = [item.model_copy(update={"split": None}) for item in bench.items]
    errors = [error for seed in range(options.splits) if (error := _error(bench, free, str(seed), options)) is not None]
    if not errors:
        return None
    low, median, high = np.percentile(errors, [10, 50, 90]).tolist()
    return Spread(len(errors), low, median, high)


def _error(bench: Bench, items: Sequence[LabelledItem], seed: str, options: Options) -> float | None:
    split = split_of(items, seed=seed, share=options.share)
    fit = [item for item in items if split[item.group] == "fit"]
    test = [item for item in items if split[item.group] == "test"]
    if not fit or not test:
        return None
    calibrator = fitted(method_for(len(fit), options.method), tallied(fit, bench.raw))
    return ece(calibrated_tally(tallied(test, bench.raw), calibrator))
