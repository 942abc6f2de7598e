"""The report as headings, sentences and tables, once for Markdown and for the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from service.calibrating.figures import Figures
from service.calibrating.fitting import CurvePoint
from service.calibrating.results import CalibrationReport, JudgeReport, JuryReport, LabelFacts
from service.calibrating.wording import LABELS, NAMES, number, shown, signed
from service.stats.tallies import Bin


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text beneath a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands below it. `judge` names the judge whose plots belong here."""

    title: str
    level: int
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    judge: JudgeReport | None = field(default=None)


def sections(report: CalibrationReport) -> Iterator[Section]:
    """The whole report in order."""
    yield Section("Calibration", 1, (_made(report), *report.remarks))
    yield Section("Labels", 2, tables=(_labels(report.labels),))
    yield Section("All judges", 2, (_beside(),), (_overview(report),))
    for jury in report.juries:
        yield _jury(jury)
    for judge in (*report.judges, *[jury.report for jury in report.juries]):
        yield from _judge(judge)


def _made(report: CalibrationReport) -> str:
    with_what = ", ".join(f"{name} {number}" for name, number in report.libraries.items())
    return (
        f"Labels: {report.source}. Groups were split by hash with the seed {report.seed!r}, {report.share:.0%} of them fitted; "
        f"maps, thresholds and bands come from those, all figures from the others, scored once. "
        f"Intervals are at 95 %, by {report.draws} draws of whole groups. Made with {with_what}."
    )


def _beside() -> str:
    return (
        "Figures are of held-out items. Human: one annotator in place of the judge, another in place of the label, on the "
        "items that two or more labelled."
    )


def _labels(facts: Sequence[LabelFacts]) -> Table:
    head = (
        "criterion",
        "labels are",
        "items",
        "groups",
        "annotators",
        "labelled twice",
        "passing",
        "alpha",
        "kappa",
        "AC1",
    )
    return Table(head, tuple([_label_row(one) for one in facts]))


def _label_row(one: LabelFacts) -> tuple[str, ...]:
    between = [shown(one.humans.of(name)) if one.humans else "-" for name in ("alpha", "kappa", "ac1")]
    counts = (one.items, one.groups, one.annotators, one.twice)
    return (one.criterion, LABELS[one.origin], *map(str, counts), f"{one.passing / one.items:.3f}", *between)


OVERVIEW = {
    "balanced_accuracy": "balanced acc.",
    "kappa": "kappa",
    "ac1": "AC1",
    "auroc": "AUROC",
    "auroc_within": "within strata",
    "brier": "Brier",
    "ece": "ECE",
}


def _overview(report: CalibrationReport) -> Table:
    rows: list[tuple[str, ...]] = []
    for judge in (*report.judges, *[jury.report for jury in report.juries]):
        state = judge.method if judge.calibrated else f"{judge.method}, uncalibrated"
        rows.append((judge.name, judge.criterion, state, *[shown(judge.after.of(name)) for name in OVERVIEW]))
        if judge.humans:
            n = f"n = {judge.humans.n}"
            rows.append(
                ("human beside human", judge.criterion, n, *[shown(judge.humans.of(name)) for name in OVERVIEW])
            )
    return Table(("judge", "criterion", "map", *OVERVIEW.values()), tuple(_once(rows)))


def _once(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """A line of human figures stands once beneath judges that share it, after the last of them."""
    kept = list(rows)
    for at, row in enumerate(kept):
        if row[0] != "human beside human" or row not in kept[at + 1 :]:
            yield row


def _jury(jury: JuryReport) -> Section:
    gain = jury.advantage
    text = (
        f"Beside {jury.best}, the best single judge by the AUROC of fitted items: AUROC higher by {shown(gain.auroc)}, "
        f"Brier score lower by {shown(gain.brier)}. "
        + ("Kept." if jury.kept else "Not kept: the gain in the Brier score may be none, and a jury costs more.")
    )
    weights = tuple([(name, f"{weight:.3f}") for name, weight in jury.weights.items()])
    return Section(f"Jury on {jury.criterion}", 2, (text,), (Table(("judge", "weight"), weights),))


def _judge(judge: JudgeReport) -> Iterator[Section]:
    yield Section(f"{judge.name} on {judge.criterion}", 2, tuple(_sentences(judge)), (_beside_humans(judge),), judge)
    yield Section("Reliability", 3, tables=(_reliability(judge.table_before, judge.table_after),))
    if judge.slices:
        yield Section("By step and tool family", 3, tables=(_slices(judge),))
    yield Section("Accuracy against coverage", 3, (_abstaining(judge),), (_curve(judge),))
    if judge.worst:
        yield Section("Where judge and labels differ most", 3, tables=(_worst(judge),))


def _sentences(judge: JudgeReport) -> Iterator[str]:
    status = "calibrated" if judge.calibrated else "uncalibrated"
    yield (
        f"Against {LABELS[judge.origin]}. Fit {judge.fit_id}: {judge.method}, {status}; {judge.fitted} items of "
        f"{judge.fitted_groups} groups fitted, {judge.held_out} items of {judge.held_out_groups} groups held out, "
        f"{judge.missing} labelled items without its word. Passes from {judge.threshold:.3f} upwards."
    )
    if judge.ece_by_chance is not None:
        yield f"By chance alone, exactly right values would show an ECE of {judge.ece_by_chance:.3f} on so many items."
    if judge.ece_over_splits:
        s = judge.ece_over_splits
        yield f"ECE over {s.splits} other splits: median {s.median:.3f}, 10th percentile {s.low:.3f}, 90th {s.high:.3f}."
    if judge.retest:
        r = judge.retest
        yield (
            f"Asked again ({r.items} items, up to {r.samples} answers each): two answers differ in their verdict for "
            f"{r.flip_rate:.1%} of items, and in their value by {r.spread:.3f}. No figure can be better than this noise."
        )
    if judge.length:
        b = judge.length
        yield (
            f"Rank correlation with the length of the answer: its value {signed(b.score)}, the label {signed(b.label)}, "
            f"its value among items of one label {signed(b.within)}."
        )


def _beside_humans(judge: JudgeReport) -> Table:
    """Each figure before and after, where humans agree, and of humans."""
    columns: list[tuple[str, Figures | None]] = [
        (f"raw, from {judge.own_threshold:g}", judge.own),
        (f"calibrated, from {judge.threshold:.3f}", judge.after),
        ("calibrated, where humans agree", judge.where_humans_agree),
        ("human beside human", judge.humans),
    ]
    kept = [(name, figures) for name, figures in columns if figures is not None]
    rows = [("items", *[str(figures.n) for _, figures in kept])]
    rows += [(label, *[_cell(figures, at) for _, figures in kept]) for at, label in enumerate(CELLS)]
    rows += [(label, *[shown(figures.of(name)) for _, figures in kept]) for name, label in NAMES.items()]
    return Table(("", *[name for name, _ in kept]), tuple(rows))


CELLS = ("pass, labels pass", "pass, labels fail", "fail, labels pass", "fail, labels fail")


def _cell(figures: Figures, at: int) -> str:
    return f"{figures.confusion[at]:.1f}".removesuffix(".0")


def _reliability(before: Sequence[Bin], after: Sequence[Bin]) -> Table:
    rows = [(name, *_bin(one)) for name, bins in (("raw", before), ("calibrated", after)) for one in bins]
    return Table(("value", "from", "to", "items", "mean value", "share passing", "gap"), tuple(rows))


def _bin(one: Bin) -> tuple[str, ...]:
    numbers = (one.mean, one.share, one.mean - one.share)
    return f"{one.low:.3f}", f"{one.high:.3f}", f"{one.n:.0f}", *[f"{number:.3f}" for number in numbers]


def _slices(judge: JudgeReport) -> Table:
    rows = [
        (one.by, one.name, str(one.figures.n), *[_pair(one.figures, one.humans, name) for name in OVERVIEW])
        for one in judge.slices
    ]
    return Table(("by", "name", "items", *[f"{name}; human" for name in OVERVIEW.values()]), tuple(rows))


def _pair(figures: Figures, humans: Figures | None, name: str) -> str:
    beside = "-" if humans is None else number(humans.of(name).value)
    return f"{shown(figures.of(name))}; {beside}"


def _abstaining(judge: JudgeReport) -> str:
    found = judge.abstaining
    if found is None:
        return (
            "No band was chosen: on the fitted items, leaving out the least sure ones made the rest no more accurate."
        )
    low, high = found.band
    return (
        f"Values from {low:.3f} to {high:.3f} go to a human. That leaves {found.coverage:.1%} of the held-out items decided, "
        f"with an accuracy of {number(found.accuracy)} (all: {number(judge.after.of('accuracy').value)})."
    )


def _curve(judge: JudgeReport) -> Table:
    rows = [(f"{p.margin:.3f}", f"{p.coverage:.3f}", f"{p.accuracy:.3f}") for p in _thinned(judge.curve, 12)]
    return Table(("least margin", "coverage", "accuracy"), tuple(rows))


def _thinned(points: Sequence[CurvePoint], count: int) -> list[CurvePoint]:
    """The first, the last and evenly spaced ones between."""
    if len(points) <= count:
        return list(points)
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def _worst(judge: JudgeReport) -> Table:
    rows = [
        (
            f"{one.id} (line {one.line})",
            ", ".join(one.labels),
            f"{one.raw:.3f}",
            f"{one.value:.3f}",
            one.excerpt,
        )
        for one in judge.worst
    ]
    return Table(("item", "labels", "raw", "calibrated", "answer"), tuple(rows))
