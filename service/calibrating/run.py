"""A calibration run: split by group, fit on one part, choose the threshold there, score the other part once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from service.calibrating.bench import Bench, bench_of, libraries
from service.calibrating.figures import human_figures
from service.calibrating.fitting import FEWEST
from service.calibrating.jury import advantage, jury_weights, said_by_jury
from service.calibrating.labels import LabelledSet, origin_of
from service.calibrating.options import Options
from service.calibrating.predictions import Prediction, Recorded, by_judge
from service.calibrating.reporting import report_on
from service.calibrating.results import REPORT_VERSION, CalibrationReport, JuryReport, LabelFacts, Run
from service.core.calibrate import Binding, Fit
from service.errors import InputError


def calibrate(labels: LabelledSet, predictions: Iterable[Prediction], options: Options | None = None) -> Run:
    """The report and the fits of all judges that said something of the labelled items.

    InputError where none did, and where items of a group are wanted on both sides of the split.
    """
    options = options or Options()
    recorded = by_judge(predictions)
    benches = [bench for one in recorded if (bench := bench_of(labels, one, options)) is not None]
    if not benches:
        raise InputError.at(labels.source, "no prediction is of an item and criterion of this set")
    made = [report_on(bench, options) for bench in benches]
    juries = [found for found in _juries(benches, options) if found is not None] if options.jury else []
    report = CalibrationReport(
        version=REPORT_VERSION,
        source=labels.source,
        seed=options.seed,
        share=options.share,
        draws=options.resampling.draws,
        labels=tuple([_facts(labels, name, options) for name in sorted({item.criterion for item in labels.items})]),
        judges=tuple([report for report, _ in made]),
        juries=tuple([jury for jury, _ in juries]),
        remarks=tuple(_remarks(labels, recorded, benches)),
        libraries=libraries(),
    )
    fits = [fit for _, fit in made] + [fit for jury, fit in juries if jury.kept]
    return Run(report, tuple(fits))


def _facts(labels: LabelledSet, criterion: str, options: Options) -> LabelFacts:
    items = [item for item in labels.items if item.criterion == criterion]
    return LabelFacts(
        criterion=criterion,
        origin=origin_of(items),
        items=len(items),
        groups=len({item.group for item in items}),
        annotators=len({label.annotator for item in items for label in item.labels}),
        labels=sum(len(item.labels) for item in items),
        twice=sum(len(item.labels) > 1 for item in items),
        passing=sum(item.passes for item in items),
        humans=human_figures(items, options.resampling),
    )


def _remarks(labels: LabelledSet, recorded: Sequence[Recorded], benches: Sequence[Bench]) -> Iterable[str]:
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


def _juries(benches: Sequence[Bench], options: Options) -> Iterable[tuple[JuryReport, Fit] | None]:
    for criterion in sorted({bench.criterion for bench in benches}):
        members = [bench for bench in benches if bench.criterion == criterion]
        if len(members) > 1:
            yield _jury(members, options)


def _jury(members: Sequence[Bench], options: Options) -> tuple[JuryReport, Fit] | None:
    """The jury on the items that all its members judged; None where too few of them can be fitted."""
    shared = {item.key for item in members[0].items if all(item.key in bench.raw for bench in members)}
    items = [item for item in members[0].items if item.key in shared]
    raw = {item.key: [bench.raw[item.key][0] for bench in members] for item in items}
    fitted = [item for item in items if members[0].split[item.group] == "fit"]
    if len(fitted) < FEWEST or len(fitted) == len(items):
        return None
    weights = jury_weights([raw[item.key] for item in fitted], [item.passes for item in fitted])
    said = {key: (said_by_jury(weights, values),) for key, values in raw.items()}
    recorded = Recorded(_binding(members, weights), members[0].criterion, said, f"jury of {len(members)}")
    jury = bench_of(replace(members[0].labels, items=tuple(items)), recorded, options)
    if jury is None:
        return None
    best = max(members, key=lambda bench: (bench.skill, bench.name))
    gain = advantage(jury.rows(), best.rows(among=shared), options.resampling)
    report, fit = report_on(jury, options)
    named = {bench.name: weight for bench, weight in zip(members, weights, strict=True)}
    return JuryReport(jury.criterion, named, best.name, gain, gain.kept, report), fit


def _binding(members: Sequence[Bench], weights: Sequence[float]) -> Binding:
    """A jury is bound to all its members and their weights."""
    parts = [f"{bench.binding.fingerprint}:{weight:.12f}" for bench, weight in zip(members, weights, strict=True)]
    models = "+".join(bench.binding.model for bench in members)
    digest = Binding("jury", "+".join(parts), models).fingerprint
    return Binding("jury", digest, models)
