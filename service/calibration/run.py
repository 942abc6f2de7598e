"""A calibration run: fit all labels, and score each item once by what was fitted without its group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from service.calibration.bench import Bench, build_bench
from service.calibration.figures import compute_human_figures
from service.calibration.juries import build_juries
from service.calibration.labels import LabelledSet, find_origin
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, Prediction, group_by_judge, split_juries
from service.calibration.report.held_out import build_judge_report, list_libraries
from service.calibration.results import REPORT_VERSION, CalibrationReport, CalibrationRun, LabelFacts
from service.calibration.splits import names_split
from service.errors import InputError, Problem


def calibrate(
    labels: LabelledSet, predictions: Iterable[Prediction], options: ReportOptions | None = None
) -> CalibrationRun:
    """Build the report and the fits of all judges that answered about the labelled items.

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
    judge_reports = [build_judge_report(bench, options) for bench in benches]
    juries = build_juries(benches, juries_listed, options) if options.jury else []
    report = CalibrationReport(
        version=REPORT_VERSION,
        source=labels.source,
        seed=options.seed,
        folds=options.folds,
        draws=options.resampling.draws,
        labels=tuple(
            [_build_facts(labels, name, options) for name in sorted({item.criterion for item in labels.items})]
        ),
        judges=tuple([report for report, _ in judge_reports]),
        juries=tuple([jury for jury, _ in juries]),
        remarks=tuple(_list_remarks(labels, recorded, benches)),
        libraries=list_libraries(),
        given=tuple(sorted({bench.recorded.criterion for bench in benches if bench.given})),
    )
    fits = [fit for _, fit in judge_reports] + [fit for jury, fit in juries if jury.kept]
    return CalibrationRun(report, tuple({fit.fingerprint: fit for fit in fits}.values()))


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
