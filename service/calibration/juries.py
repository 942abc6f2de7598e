"""The models that a judge asks as a jury: a weight for each, and the fit that serves it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from service.calibration.bench import Bench, RawValues, build_bench, tally_items
from service.calibration.comparison import compare_figures
from service.calibration.fitting import explain_too_few
from service.calibration.labels import LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, JuryId
from service.calibration.report.held_out import build_judge_report
from service.calibration.results import JuryMember, JuryReport
from service.core.judging.fits.fit import Binding, Fit, join_models
from service.stats.tallies import Floats, auroc

RIDGE = 1.0
"""The strength of the penalty on weights: a weight of about 1.4 costs as much as one item that is completely wrong."""


def build_juries(
    benches: Sequence[Bench], listed: Collection[JuryId], options: ReportOptions
) -> list[tuple[JuryReport, Fit]]:
    """Build the jury of all models that one judge asked, by criterion, and the juries that judges list.

    `listed`: the latter; their fits are written in any case.
    """
    by_judge: dict[JuryId, list[Bench]] = defaultdict(list)
    for bench in benches:
        by_judge[_name_judge(bench.recorded.criterion, bench.recorded.binding)].append(bench)
    runs: list[tuple[JuryReport, Fit] | None] = []
    for judge, candidates in sorted(by_judge.items(), key=lambda pair: pair[0]):
        own = [
            [bench for bench in candidates if bench.recorded.binding.model in jury.binding.models]
            for jury in sorted(listed)
            if _name_judge(*jury) == judge
        ]
        runs += [build_jury(members, options, listed=True) for members in own]
        if candidates not in own:
            runs.append(build_jury(candidates, options))
    return [one for one in runs if one is not None]


def _name_judge(criterion: str, binding: Binding) -> JuryId:
    return JuryId(criterion, replace(binding, model=""))


def build_jury(
    members: Sequence[Bench], options: ReportOptions, *, listed: bool = False
) -> tuple[JuryReport, Fit] | None:
    """Build the jury on the items that all members judged; None for a single member, and where too few items can be fitted."""
    bench = build_jury_bench(members, options)
    if bench is None:
        return None
    # By the AUROC on the fitted items.
    best = max(members, key=lambda one: (auroc(tally_items(one.fitted, one.raw)) or 0.0, one.name))
    shared = bench.raw.keys()
    figures = compare_figures(bench.build_rows(), best.build_rows(among=shared), options.resampling)
    gain = next(one.difference for one in figures if one.name == "brier")
    report, fit = build_judge_report(bench, options)
    jury_report = JuryReport(
        criterion=bench.recorded.criterion,
        best=best.name,
        gain=gain,
        kept=True if listed else None if gain.low is None else gain.low > 0,
        report=report,
        asked=listed,
        members=tuple(_measure_members(members, bench)),
    )
    return jury_report, fit


def build_jury_bench(members: Sequence[Bench], options: ReportOptions) -> Bench | None:
    """Fit the jury as one judge, on the items that all members judged; None as for `build_jury`."""
    if len(members) < 2:
        return None
    items = [item for item in members[0].items if all(item.key in bench.raw for bench in members)]
    if explain_too_few(items):
        return None

    def rescore(fitted: Sequence[LabelledItem]) -> RawValues:
        weights = _weigh(members, fitted)
        raw = {item.key: [one.raw[item.key][0] for one in members] for item in items}
        means = {key: sum(weight * value for weight, value in zip(weights, raw[key], strict=True)) for key in raw}
        return {key: (min(1.0, max(0.0, mean)),) for key, mean in means.items()}

    shared = {item.key for item in items}
    fitted = [item for item in members[0].fitted if item.key in shared]
    models = [bench.recorded.binding.model for bench in members]
    recorded = JudgePredictions(
        replace(members[0].recorded.binding, model=join_models(models)),
        members[0].recorded.criterion,
        rescore(fitted),
        f"jury of {len(members)}",
        costs={
            key: fsum([one.recorded.costs[key] for one in members])
            for key in shared
            if all(key in one.recorded.costs for one in members)
        },
        threshold=members[0].recorded.threshold,
        weights=dict(zip(models, _weigh(members, fitted), strict=True)),
    )
    return build_bench(replace(members[0].labels, items=tuple(items)), recorded, options, rescore)


def _weigh(members: Sequence[Bench], items: Sequence[LabelledItem]) -> tuple[float, ...]:
    raw = [[bench.raw[item.key][0] for bench in members] for item in items]
    return fit_jury_weights(raw, [item.passes for item in items])


def fit_jury_weights(raw: Sequence[Sequence[float]], labels: Sequence[bool]) -> tuple[float, ...]:
    """Fit a weight of at least 0 for each judge, summing to 1, by ridge-penalized logistic regression.

    `raw` is of shape (items, judges), in [0, 1]. Equal weights where no judge helps.
    """
    x, y = np.asarray(raw, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    judges = x.shape[1]

    def compute_loss(at: Floats) -> tuple[float, Floats]:
        z = x @ at[:-1] + at[-1]
        wrong = 1 / (1 + np.exp(-z)) - y
        loss = float((np.logaddexp(0, z) - y * z).sum()) + RIDGE / 2 * float((at[:-1] ** 2).sum())
        return loss, np.append(x.T @ wrong + RIDGE * at[:-1], float(wrong.sum()))

    bounds = [(0.0, None)] * judges + [(None, None)]
    start = np.append(np.ones(judges), 0.0)
    result = optimize.minimize(compute_loss, start, jac=True, method="L-BFGS-B", bounds=bounds)  # pyright: ignore
    weights = np.maximum(np.asarray(result.x[:-1], dtype=np.float64), 0.0)  # pyright: ignore
    total = float(weights.sum())
    return tuple([float(weight) / total for weight in weights] if total > 0 else [1 / judges] * judges)


def _measure_members(members: Sequence[Bench], jury: Bench) -> Iterator[JuryMember]:
    """Measure what each member weighs and costs, and how far it agrees with the labels of the items that all judged."""
    shared = jury.raw.keys()
    weights = _weigh(members, [item for item in members[0].fitted if item.key in shared])
    for one, weight in zip(members, weights, strict=True):
        agreement = [one.agrees(item) for item in one.held_out if item.key in shared]
        yield JuryMember(one.name, weight, one.price, fmean(agreement) if agreement else None)
