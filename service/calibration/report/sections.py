"""The report as headings, sentences and tables, once for Markdown and for the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from service.calibration.report.judge_sections import build_judge_sections
from service.calibration.report.wording import LABELS, OVERVIEW, show_measure
from service.calibration.results import CalibrationReport, JudgeReport, JuryReport, LabelFacts
from service.reporting.document import Cell, Link, Section, Table


def build_sections(report: CalibrationReport) -> Iterator[Section]:
    """The whole report in order."""
    yield Section("Calibration", text=(_render_origin(report), *report.remarks), level=1)
    yield Section("Labels", (_render_labels(report.labels),), level=2)
    yield Section("All judges", (_render_overview(report),), text=(_render_note(),), level=2)
    for jury in report.juries:
        yield _render_jury(jury)
    for at, judge in enumerate(_list_judges(report), 1):
        yield from build_judge_sections(judge, _build_anchor(at))


def _list_judges(report: CalibrationReport) -> tuple[JudgeReport, ...]:
    return (*report.judges, *[jury.report for jury in report.juries])


def _build_anchor(number: int) -> str:
    return f"judge-{number}"


def _render_origin(report: CalibrationReport) -> str:
    with_what = ", ".join(f"{name} {number}" for name, number in report.libraries.items())
    return (
        f"Labels: {report.source}. Groups were split by hash with the seed {report.seed!r}, {report.share:.0%} of them fitted; "
        f"maps, thresholds and bands come from those, all figures from the others, scored once. "
        f"Intervals are at 95 %, by {report.draws} draws of whole groups. Made with {with_what}."
    )


def _render_note() -> str:
    return (
        "Figures are of held-out items. Human: one annotator in place of the judge, another in place of the label, on the "
        "items that two or more labelled."
    )


def _render_labels(facts: Sequence[LabelFacts]) -> Table:
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
    return Table(head, tuple([_render_label_row(one) for one in facts]))


def _render_label_row(one: LabelFacts) -> tuple[str, ...]:
    between = [show_measure(one.humans.of(name)) if one.humans else "-" for name in ("alpha", "kappa", "ac1")]
    counts = (one.items, one.groups, one.annotators, one.twice)
    return (one.criterion, LABELS[one.origin], *map(str, counts), f"{one.passing / one.items:.3f}", *between)


def _render_overview(report: CalibrationReport) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for at, judge in enumerate(_list_judges(report), 1):
        state = judge.method if judge.calibrated else f"{judge.method}, uncalibrated"
        name = Link(judge.name, _build_anchor(at))
        rows.append((name, judge.criterion, state, *[show_measure(judge.after.of(name)) for name in OVERVIEW]))
        if judge.humans:
            n = f"n = {judge.humans.n}"
            rows.append(
                ("human beside human", judge.criterion, n, *[show_measure(judge.humans.of(name)) for name in OVERVIEW])
            )
    return Table(("judge", "criterion", "map", *OVERVIEW.values()), tuple(_drop_repeats(rows)))


def _drop_repeats(rows: Iterable[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """A line of human figures stands once beneath judges that share it, after the last of them."""
    kept = list(rows)
    for at, row in enumerate(kept):
        if row[0] != "human beside human" or row not in kept[at + 1 :]:
            yield row


def _render_jury(jury: JuryReport) -> Section:
    gain = jury.advantage
    text = (
        f"Beside {jury.best}, the best single judge by the AUROC of fitted items: AUROC higher by {show_measure(gain.auroc)}, "
        f"Brier score lower by {show_measure(gain.brier)}. "
        + ("Kept." if jury.kept else "Not kept: the gain in the Brier score may be none, and a jury costs more.")
    )
    weights = tuple([(name, f"{weight:.3f}") for name, weight in jury.weights.items()])
    return Section(f"Jury on {jury.criterion}", (Table(("judge", "weight"), weights),), text=(text,), level=2)
