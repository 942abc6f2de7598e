"""The report of a calibration run as Markdown and as one HTML page: the same headings, sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator

from service.calibration.report.judge_sections import build_judge_sections
from service.calibration.report.usefulness import build_usefulness
from service.calibration.report.wording import (
    FIGURE_NAMES,
    ORIGIN_NAMES,
    OVERVIEW_FIGURES,
    show_measure,
    show_number,
)
from service.calibration.results import CalibrationReport, JuryReport, LabelFacts
from service.reporting.document import Cell, Link, Section, Table, render_markdown, render_page


def render_report_markdown(report: CalibrationReport) -> str:
    """Render the whole report; no text from the labels can break a table or make a link."""
    return render_markdown(_build_sections(report))


def render_report_page(report: CalibrationReport) -> str:
    """Render the whole page, with plots."""
    return render_page(f"Calibration: {report.source}", _build_sections(report))


NOTE = (
    "Figures are of items scored by a map that has not seen them. Human: one annotator as the judge, another "
    "as the label, on the items that two or more labelled. Of the Brier score and the ECE, less is better. AUROC here is of "
    "calibrated values, which five maps give: it can be lower than that of raw ones, which tells whether the judge is useful."
)


def _build_sections(report: CalibrationReport) -> Iterator[Section]:
    yield Section("Calibration", text=(" ".join(_describe_run(report)), *report.remarks), level=1)
    yield build_usefulness(report)
    yield Section("Labels", (_tabulate_labels(report.labels),), level=2)
    yield Section("All judges", (_tabulate_judges(report),), text=(NOTE,), level=2)
    for jury in report.juries:
        yield _build_jury(jury)
    for at, judge in enumerate(report.all_judges, 1):
        yield from build_judge_sections(judge, f"judge-{at}")


def _describe_run(report: CalibrationReport) -> Iterator[str]:
    """Say which items the figures are computed on, and how."""
    yield f"Labels: {report.source}."
    criteria = {facts.criterion for facts in report.labels}
    if report.given:
        names = "" if criteria == set(report.given) else f" of {', '.join(report.given)}"
        yield f"The items{names} say themselves which are fitted; all figures are of the others, scored once."
    if criteria != set(report.given):
        yield (
            f"Groups were dealt into {report.folds} parts by hash with the seed {report.seed!r}. Each part was scored once, by "
            "map, threshold and review band that were fitted to the others: all figures are of these scores. What is served was "
            "fitted to all."
        )
    draws = report.draws
    yield f"Intervals are at 95 %, by {draws} draws of whole groups." if draws else "No intervals were drawn."
    yield f"Made with {', '.join(f'{name} {number}' for name, number in report.libraries.items())}."


def _tabulate_labels(facts: tuple[LabelFacts, ...]) -> Table:
    counts = ("items", "groups", "annotators", "labelled twice")
    rows = [
        (
            one.criterion,
            ORIGIN_NAMES[one.origin],
            *map(str, (one.items, one.groups, one.annotators, one.twice)),
            f"{one.passing / one.items:.3f}",
            *[show_measure(one.humans.of(name)) if one.humans else "-" for name in ("alpha", "kappa", "ac1")],
        )
        for one in facts
    ]
    return Table(("criterion", "labels are", *counts, "passing", "alpha", "kappa", "AC1"), tuple(rows))


def _tabulate_judges(report: CalibrationReport) -> Table:
    """Tabulate the judges, with one line of human figures below the last judge that shares it."""
    rows: list[tuple[Cell, ...]] = []
    for at, judge in enumerate(report.all_judges, 1):
        state = judge.method if judge.calibrated else f"{judge.method}, uncalibrated"
        figures = [show_measure(judge.after.of(name)) for name in OVERVIEW_FIGURES]
        rows.append((Link(judge.name, f"judge-{at}"), judge.criterion, state, *figures))
        if judge.humans:
            human = [show_measure(judge.humans.of(name)) for name in OVERVIEW_FIGURES]
            line = ("one human with another", judge.criterion, f"n = {judge.humans.n}", *human)
            rows = [*[row for row in rows if row != line], line]
    return Table(("judge", "criterion", "map", *[FIGURE_NAMES[name] for name in OVERVIEW_FIGURES]), tuple(rows))


def _build_jury(jury: JuryReport) -> Section:
    """Tabulate the members and the whole jury: what each weighs and costs, and how often it agrees."""
    own = jury.report
    every = [(one.name, one.weight, one.agreement, one.cost_usd) for one in jury.members]
    every.append((own.name, 1.0, own.after.of("accuracy").value, own.cost_usd))
    rows = [
        (name, f"{weight:.3f}", show_number(agreement), "-" if price is None else f"{price:.5f}")
        for name, weight, agreement, price in every
    ]
    if jury.asked:
        kept = "Kept: a judge lists these models, and is served by this fit."
    elif jury.kept is None:
        kept = "Not decided, and no fit written: without draws there is no interval to show a gain."
    else:
        kept = "Kept." if jury.kept else "Not kept: there may be no gain, and a jury costs more."
    gain = f"Brier score lower than that of {jury.best}, the best single judge, by {show_measure(jury.gain)}. {kept}"
    table = Table(("judge", "weight", "agrees", "$ an answer"), tuple(rows))
    return Section(f"Jury on {jury.criterion}", (table,), text=(gain,), level=2)
