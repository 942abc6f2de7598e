"""A calibration run: fit all labels, and score each item once by what was fitted without its group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from service.calibration.bench import Bench, RawValues, build_bench, tally_items
from service.calibration.comparison import compare_figures
from service.calibration.figures import compute_human_figures
from service.calibration.fitting import explain_too_few
from service.calibration.labels import LabelledItem, LabelledSet, find_origin
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, JuryId, Prediction, group_by_judge, split_juries
from service.calibration.report.held_out import build_judge_report, list_libraries
from service.calibration.results import REPORT_VERSION, CalibrationReport, JuryMember, JuryReport, LabelFacts
from service.calibration.splits import names_split
from service.core.judging.fits.fit import Binding, join_models
from service.errors import InputError, Problem
from service.stats.tallies import Floats, auroc


def calibrate(
    labels: LabelledSet, predictions: Iterable[Prediction], options: ReportOptions | None = None
) -> CalibrationReport:
    """Build the report, with the fits of all judges that answered about the labelled items.

    InputError where no judge did, and where items of one group are to be on both sides of the split.
    """
    options = options or ReportOptions()
    answers, juries_listed = split_juries(predictions)
    recorded = group_by_judge(answers)
    benches = [bench for one in recorded if (bench := build_bench(labels, one, options)) is not None]
    if not benches:
        reasons = [*_explain_unfitted(labels, recorded, benches)]
        reasons = reasons or ["no prediction is of an item and criterion of this set"]
        raise InputError([Problem(labels.source, reason) for reason in reasons])
    return CalibrationReport(
        version=REPORT_VERSION,
        source=labels.source,
        seed=options.seed,
        folds=options.folds,
        draws=options.resampling.draws,
        labels=tuple(
            [_build_facts(labels, name, options) for name in sorted({item.criterion for item in labels.items})]
        ),
        judges=tuple([build_judge_report(bench, options) for bench in benches]),
        juries=tuple(build_juries(benches, juries_listed, options) if options.jury else ()),
        remarks=tuple(_list_remarks(labels, recorded, benches)),
        libraries=list_libraries(),
        given=tuple(sorted({bench.recorded.criterion for bench in benches if bench.given})),
    )


def _build_facts(labels: LabelledSet, criterion: str, options: ReportOptions) -> LabelFacts:
    items = [item for item in labels.items if item.criterion == criterion]
    return LabelFacts(
        criterion=criterion,
        origin=find_origin(items),
        items=len(items),
        groups=len({item.group for item in items}),
        annotators=len({label.annotator for item in items for label in item.labels}),
        labels=sum(len(item.labels) for item in items),
        twice=sum(len(item.opinions) > 1 for item in items),
        passing=sum(item.passes for item in items),
        humans=compute_human_figures(items, options.resampling),
    )


def _list_remarks(labels: LabelledSet, recorded: Sequence[JudgePredictions], benches: Sequence[Bench]) -> Iterator[str]:
    known = {item.key for item in labels.items}
    for one in recorded:
        unmatched = len(one.raw.keys() - known)
        if unmatched:
            yield f"{one.name}: {unmatched} predictions match no labelled item of {one.criterion!r} and were left out"
    yield from _explain_unfitted(labels, recorded, benches)
    for bench in benches:
        if bench.why:
            yield f"{bench.name}: uncalibrated, for {bench.why}"
    if any(item.origin == "constructed" for item in labels.items):
        yield "These labels were written with the cases: agreement with them is no agreement with humans."


def _explain_unfitted(
    labels: LabelledSet, recorded: Sequence[JudgePredictions], benches: Sequence[Bench]
) -> Iterator[str]:
    """Explain for each judge without a bench that judged labelled items why they could not be fitted and held out."""
    seen = {(bench.recorded.criterion, bench.recorded.binding) for bench in benches}
    for one in recorded:
        items = [item for item in labels.items if item.key in one.raw]
        if not items or (one.criterion, one.binding) in seen:
            continue
        if names_split(items):
            why = "are all on one side of their `split`: some must be `fit`, and some `test`"
        elif len({item.group for item in items}) == 1:
            why = f"are all of one group, {items[0].group!r}, so none can be held out: label and judge items of other groups"
        else:
            why = "are of groups that are all held out together: judge items of more groups"
        yield f"{one.name}: no report on {one.criterion!r}, because the items that it judged {why}"


# The models that a judge asks as a jury: a weight for each, and the fit that serves it.

RIDGE = 1.0
"""The strength of the penalty on weights: a weight of about 1.4 costs as much as one item that is completely wrong."""


def build_juries(benches: Sequence[Bench], listed: Collection[JuryId], options: ReportOptions) -> list[JuryReport]:
    """Build the jury of all models that one judge asked, by criterion, and the juries that judges list.

    `listed`: the latter; their fits are written in any case.
    """
    by_judge: dict[JuryId, list[Bench]] = defaultdict(list)
    for bench in benches:
        by_judge[_name_judge(bench.recorded.criterion, bench.recorded.binding)].append(bench)
    runs: list[JuryReport | None] = []
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


def build_jury(members: Sequence[Bench], options: ReportOptions, *, listed: bool = False) -> JuryReport | None:
    """Build the jury on the items that all members judged; None for a single member, and where too few items can be fitted."""
    bench = build_jury_bench(members, options)
    if bench is None:
        return None
    # By the AUROC on the fitted items.
    best = max(members, key=lambda one: (auroc(tally_items(one.fitted, one.raw)) or 0.0, one.name))
    shared = bench.raw.keys()
    others = [one for key, one in best.values.items() if key in shared]
    figures = compare_figures(list(bench.values.values()), others, options.resampling)
    gain = next(one.difference for one in figures if one.name == "brier")
    return JuryReport(
        criterion=bench.recorded.criterion,
        best=best.name,
        gain=gain,
        kept=True if listed else None if gain.low is None else gain.low > 0,
        report=build_judge_report(bench, options),
        asked=listed,
        members=tuple(_measure_members(members, bench)),
    )


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
        agreement = [row.right for key, row in one.values.items() if key in shared]
        yield JuryMember(one.name, weight, one.price, fmean(agreement) if agreement else None)
