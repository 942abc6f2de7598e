"""The report as headings, sentences and tables, shared by Markdown and the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from service.calibration.report.judge_sections import build_judge_sections
from service.calibration.report.usefulness import build_cascade_sections, build_usefulness
from service.calibration.report.wording import (
    ORIGIN_NAMES,
    SHORT_FIGURE_NAMES,
    describe_kept,
    show_measure,
    show_number,
)
from service.calibration.results import CalibrationReport, JuryMember, JuryReport, LabelFacts
from service.reporting.document import Cell, Link, Section, Table


def build_sections(report: CalibrationReport) -> Iterator[Section]:
    """Build the whole report in order."""
    yield Section("Calibration", text=(_render_origin(report), *report.remarks), level=1)
    yield build_usefulness(report)
    yield from build_cascade_sections(report.cascades)
    yield Section("Labels", (_render_labels(report.labels),), level=2)
    yield Section("All judges", (_render_overview(report),), text=(_render_note(),), level=2)
    for jury in report.juries:
        yield _render_jury(jury)
    for at, judge in enumerate(report.all_judges, 1):
        yield from build_judge_sections(judge, _build_anchor(at))


def _build_anchor(number: int) -> str:
    return f"judge-{number}"


def _render_origin(report: CalibrationReport) -> str:
    with_what = ", ".join(f"{name} {number}" for name, number in report.libraries.items())
    intervals = (
        f"Intervals are at 95 %, by {report.draws} draws of whole groups."
        if report.draws
        else "No intervals were drawn."
    )
    return f"Labels: {report.source}. {' '.join(_render_split(report))} {intervals} Made with {with_what}."


def _render_split(report: CalibrationReport) -> Iterator[str]:
    """Say which items the figures are computed on."""
    criteria = {facts.criterion for facts in report.labels}
    if report.given:
        names = "" if criteria == set(report.given) else f" of {', '.join(report.given)}"
        yield f"The items{names} say themselves which are fitted; all figures are of the others, scored once."
    if criteria == set(report.given):
        return
    if not report.folds:
        yield (
            f"Groups were split by hash with the seed {report.seed!r}, {report.share:.0%} of them fitted; all figures are of "
            "the others, scored once."
        )
        return
    yield (
        f"Groups were dealt into {report.folds} parts by hash with the seed {report.seed!r}. Each part was scored once, by map, "
        "threshold and band that were fitted to the others: all figures are of these scores. What is served was fitted to all."
    )


def _render_note() -> str:
    return (
        "Figures are of items scored by a map that has not seen them. Human: one annotator in place of the judge, another "
        "in place of the label, on the items that two or more labelled."
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
    agreement = [show_measure(one.humans.of(name)) if one.humans else "-" for name in ("alpha", "kappa", "ac1")]
    counts = (one.items, one.groups, one.annotators, one.twice)
    return (one.criterion, ORIGIN_NAMES[one.origin], *map(str, counts), f"{one.passing / one.items:.3f}", *agreement)


def _render_overview(report: CalibrationReport) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for at, judge in enumerate(report.all_judges, 1):
        state = judge.method if judge.calibrated else f"{judge.method}, uncalibrated"
        name = Link(judge.name, _build_anchor(at))
        rows.append(
            (name, judge.criterion, state, *[show_measure(judge.after.of(name)) for name in SHORT_FIGURE_NAMES])
        )
        if judge.humans:
            n = f"n = {judge.humans.n}"
            rows.append(
                (
                    "human beside human",
                    judge.criterion,
                    n,
                    *[show_measure(judge.humans.of(name)) for name in SHORT_FIGURE_NAMES],
                )
            )
    return Table(("judge", "criterion", "map", *SHORT_FIGURE_NAMES.values()), tuple(_drop_repeats(rows)))


def _drop_repeats(rows: Iterable[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """Keep one line of human figures for all judges that share it, below the last of them."""
    kept = list(rows)
    for at, row in enumerate(kept):
        if row[0] != "human beside human" or row not in kept[at + 1 :]:
            yield row


def _render_jury(jury: JuryReport) -> Section:
    gain = jury.advantage
    text = (
        f"Beside {jury.best}, the best single judge by AUROC: AUROC higher by {show_measure(gain.auroc)}, "
        f"Brier score lower by {show_measure(gain.brier)}. " + describe_kept(jury)
    )
    return Section(f"Jury on {jury.criterion}", (_tabulate_members(jury),), text=(text, _describe_jury(jury)), level=2)


_PAYS = {True: "yes", False: "no: the jury is better without it", None: "not shown"}


def _tabulate_members(jury: JuryReport) -> Table:
    """Tabulate the members and the whole jury: what each costs, and what it adds."""
    rows = [
        (one.name, f"{one.weight:.3f}", *_show_costs(one), show_measure(one.gain), _PAYS[one.pays])
        for one in jury.members
    ]
    whole = (jury.report.name, "1.000", *_show_costs(jury), "", "")
    heads = ("judge", "weight", "agrees", "$ an answer", "ms, median", "Brier lower by having it", "pays for itself")
    return Table(heads, (*rows, whole))


def _show_costs(one: JuryMember | JuryReport) -> tuple[Cell, ...]:
    price = "-" if one.price is None else f"{one.price:.5f}"
    return show_number(one.agreement), price, "-" if one.latency_ms is None else f"{one.latency_ms:.0f}"


def _describe_jury(jury: JuryReport) -> str:
    unanimity = (
        "" if jury.unanimous is None else f"All members say the same of {jury.unanimous:.0%} of held-out items. "
    )
    unproven = [one.name for one in jury.members if one.pays is not True]
    if not unproven:
        return f"{unanimity}Each member pays for itself: the jury is less sharp without it."
    return f"{unanimity}Nothing shows that the jury is better for having: {', '.join(unproven)}."
