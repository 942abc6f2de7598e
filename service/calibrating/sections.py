"""The report as headings, sentences and tables, once for Markdown and for the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from service.calibrating.judge_sections import judge_sections
from service.calibrating.layout import Cell, Link, Section, Table
from service.calibrating.results import CalibrationReport, JudgeReport, JuryReport, LabelFacts
from service.calibrating.wording import LABELS, OVERVIEW, shown


def sections(report: CalibrationReport) -> Iterator[Section]:
    """The whole report in order."""
    yield Section("Calibration", 1, (_made(report), *report.remarks))
    yield Section("Labels", 2, tables=(_labels(report.labels),))
    yield Section("All judges", 2, (_beside(),), (_overview(report),))
    for jury in report.juries:
        yield _jury(jury)
    for at, judge in enumerate(_all(report), 1):
        yield from judge_sections(judge, _anchor(at))


def _all(report: CalibrationReport) -> tuple[JudgeReport, ...]:
    return (*report.judges, *[jury.report for jury in report.juries])


def _anchor(number: int) -> str:
    return f"judge-{number}"


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


def _overview(report: CalibrationReport) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for at, judge in enumerate(_all(report), 1):
        state = judge.method if judge.calibrated else f"{judge.method}, uncalibrated"
        name = Link(judge.name, _anchor(at))
        rows.append((name, judge.criterion, state, *[shown(judge.after.of(name)) for name in OVERVIEW]))
        if judge.humans:
            n = f"n = {judge.humans.n}"
            rows.append(
                ("human beside human", judge.criterion, n, *[shown(judge.humans.of(name)) for name in OVERVIEW])
            )
    return Table(("judge", "criterion", "map", *OVERVIEW.values()), tuple(_once(rows)))


def _once(rows: Iterable[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
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
