"""A calibration run: split by group, fit on one part, choose the threshold there, score the other part once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from service.calibration.bench import Bench, build_bench, list_libraries
from service.calibration.figures import compute_human_figures
from service.calibration.fitting import FEWEST
from service.calibration.jury import average_jury, fit_jury_weights, measure_advantage
from service.calibration.labels import LabelledSet, find_origin
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, Prediction, group_by_judge
from service.calibration.report.held_out import build_judge_report
from service.calibration.results import REPORT_VERSION, CalibrationReport, CalibrationRun, JuryReport, LabelFacts
from service.core.judging.fits import Binding, Fit
from service.errors import InputError


def calibrate(
    labels: LabelledSet, predictions: Iterable[Prediction], options: ReportOptions | None = None
) -> CalibrationRun:
    """The report and the fits of all judges that said something of the labelled items.

    InputError where none did, and where items of a group are wanted on both sides of the split.
    """
    options = options or ReportOptions()
    recorded = group_by_judge(predictions)
    benches = [bench for one in recorded if (bench := build_bench(labels, one, options)) is not None]
    if not benches:
        raise InputError.at(labels.source, "no prediction is of an item and criterion of this set")
    made = [build_judge_report(bench, options) for bench in benches]
    juries = [found for found in _build_juries(benches, options) if found is not None] if options.jury else []
    report = CalibrationReport(
        version=REPORT_VERSION,
        source=labels.source,
        seed=options.seed,
        share=options.share,
        draws=options.resampling.draws,
        labels=tuple(
            [_build_facts(labels, name, options) for name in sorted({item.criterion for item in labels.items})]
        ),
        judges=tuple([report for report, _ in made]),
        juries=tuple([jury for jury, _ in juries]),
        remarks=tuple(_list_remarks(labels, recorded, benches)),
        libraries=list_libraries(),
    )
    fits = [fit for _, fit in made] + [fit for jury, fit in juries if jury.kept]
    return CalibrationRun(report, tuple(fits))


def _build_facts(labels: LabelledSet, criterion: str, options: ReportOptions) -> LabelFacts:
    items = [item for item in labels.items if item.criterion == criterion]
    return LabelFacts(
        criterion=criterion,
        origin=find_origin(items),
        items=len(items),
        groups=len({item.group for item in items}),
        annotators=len({label.annotator for item in items for label in item.labels}),
        labels=sum(len(item.labels) for item in items),
        twice=sum(len(item.labels) > 1 for item in items),
        passing=sum(item.passes for item in items),
        humans=compute_human_figures(items, options.resampling),
    )


def _list_remarks(labels: LabelledSet, recorded: Sequence[JudgePredictions], benches: Sequence[Bench]) -> Iterable[str]:
    known = {item.key for item in labels.items}
    for one in recorded:
        strange = len(one.raw.keys() - known)
        if strange:
            yield f"{one.name}: {strange} predictions are of no labelled item of {one.criterion!r} and were left out"
    seen = {(bench.criterion, bench.binding) for bench in benches}
    for one in recorded:
        if (one.criterion, one.binding) not in seen and known & one.raw.keys():
            yield f"{one.name}: no report on {one.criterion!r}, for one side of the split has no item that it judged"
    for bench in benches:
        if not bench.calibrated:
            yield f"{bench.name}: uncalibrated, for {bench.why}"
    if any(item.origin == "constructed" for item in labels.items):
        yield "These labels were written with the cases: agreement with them is no agreement with humans."


def _build_juries(benches: Sequence[Bench], options: ReportOptions) -> Iterable[tuple[JuryReport, Fit] | None]:
    for criterion in sorted({bench.criterion for bench in benches}):
        members = [bench for bench in benches if bench.criterion == criterion]
        if len(members) > 1:
            yield _build_jury(members, options)


def _build_jury(members: Sequence[Bench], options: ReportOptions) -> tuple[JuryReport, Fit] | None:
    """The jury on the items that all its members judged; None where too few of them can be fitted."""
    shared = {item.key for item in members[0].items if all(item.key in bench.raw for bench in members)}
    items = [item for item in members[0].items if item.key in shared]
    raw = {item.key: [bench.raw[item.key][0] for bench in members] for item in items}
    fitted = [item for item in items if members[0].split[item.group] == "fit"]
    if len(fitted) < FEWEST or len(fitted) == len(items):
        return None
    weights = fit_jury_weights([raw[item.key] for item in fitted], [item.passes for item in fitted])
    said = {key: (average_jury(weights, values),) for key, values in raw.items()}
    recorded = JudgePredictions(_build_binding(members, weights), members[0].criterion, said, f"jury of {len(members)}")
    jury = build_bench(replace(members[0].labels, items=tuple(items)), recorded, options)
    if jury is None:
        return None
    best = max(members, key=lambda bench: (bench.skill, bench.name))
    gain = measure_advantage(jury.rows(), best.rows(among=shared), options.resampling)
    report, fit = build_judge_report(jury, options)
    named = {bench.name: weight for bench, weight in zip(members, weights, strict=True)}
    return JuryReport(jury.criterion, named, best.name, gain, gain.kept, report), fit


def _build_binding(members: Sequence[Bench], weights: Sequence[float]) -> Binding:
    """A jury is bound to all its members and their weights."""
    parts = [f"{bench.binding.fingerprint}:{weight:.12f}" for bench, weight in zip(members, weights, strict=True)]
    models = "+".join(bench.binding.model for bench in members)
    digest = Binding("jury", "+".join(parts), models).fingerprint
    return Binding("jury", digest, models)
