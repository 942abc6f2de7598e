"""The report of a calibration run as Markdown and as one HTML page: the same headings, sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator

from service.calibration.figures import Figures
from service.calibration.fitting import MIN_DECIDED
from service.calibration.report.usefulness import build_usefulness
from service.calibration.report.wording import FIGURE_NAMES, ORIGIN_NAMES, OVERVIEW_FIGURES, show_measure, show_number
from service.calibration.results import CalibrationReport, JudgeReport, JuryReport, LabelFacts
from service.reporting.document import Cell, Curve, Link, Plot, Section, Table, render_markdown, render_page


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
        yield from _build_judge_sections(judge, f"judge-{at}")


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
        state = f"{judge.fit.method}, uncalibrated" if judge.why else judge.fit.method
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


# One judge.

CONFUSION_LABELS = ("pass, labels pass", "pass, labels fail", "fail, labels pass", "fail, labels fail")


def _build_judge_sections(judge: JudgeReport, anchor: str) -> Iterator[Section]:
    """Build the sections about a judge, anchored at `anchor`."""
    title, text = f"{judge.name} on {judge.criterion}", tuple(_describe(judge))
    yield Section(title, (_tabulate_figures(judge),), text=text, level=2, plots=_build_plots(judge), anchor=anchor)
    yield Section("Reliability", (_tabulate_reliability(judge),), folded=True)
    yield Section("Accuracy against coverage", (_tabulate_promises(judge),), text=(_describe_band(judge),), folded=True)
    if judge.worst:
        rows = [
            (
                *(f"{one.id} (line {one.line})", ", ".join(one.labels), f"{one.raw:.3f}", f"{one.value:.3f}"),
                *(one.answer, one.reason),
            )
            for one in judge.worst
        ]
        table = Table(("item", "labels", "raw", "calibrated", "answer", "the judge's reason"), tuple(rows))
        yield Section("Where judge and labels differ most", (table,), folded=True)


def _build_plots(judge: JudgeReport) -> tuple[Plot, ...]:
    tables = (("raw", judge.table_before, "#b35c00"), ("calibrated", judge.table_after, "#1d4f8c"))
    perfect = Curve("perfectly calibrated", ((0.0, 0.0), (1.0, 1.0)), "#767676")
    reliability = [Curve(name, tuple([(one.mean, one.share) for one in bins]), color) for name, bins, color in tables]
    decided = [Curve("judge", tuple([(one.coverage, one.accuracy) for one in judge.curve]), "#1d4f8c")]
    if judge.humans and (human := judge.humans.of("accuracy").value) is not None:
        decided.append(Curve("one human with another", ((0.0, human), (1.0, human)), "#2e7d32"))
    return (
        Plot("Reliability", "value", "share that labels pass", (perfect, *reliability)),
        Plot("Accuracy against coverage", "share of items decided", "accuracy among them", tuple(decided)),
    )


def _describe(judge: JudgeReport) -> Iterator[str]:
    fit, use = judge.fit, judge.use
    status = f"not used, as its judge is {use}" if use != "useful" else "uncalibrated" if judge.why else "calibrated"
    yield (
        f"Against {ORIGIN_NAMES[fit.origin]}. Fit {fit.id}: {fit.method}, {status}; {fit.labels} items of "
        f"{fit.groups} groups fitted, {judge.after.n} items of {judge.after.groups} groups scored while held out, "
        f"{judge.missing} labelled items without its answer. Passes from {fit.threshold:.3f} upwards."
    )
    if judge.retest:
        r = judge.retest
        yield (
            f"Asked again ({r.items} items): the verdict of two answers differs for a share of {show_measure(r.flip_rate)} of "
            "items. This is the noise floor: no figure of this judge can be trusted further."
        )


def _tabulate_figures(judge: JudgeReport) -> Table:
    columns: list[tuple[str, Figures]] = [
        (f"raw, from {judge.own_threshold:g}", judge.own),
        (f"calibrated, from {judge.fit.threshold:.3f}", judge.after),
        *([("one human with another", judge.humans)] if judge.humans else []),
    ]
    rows = [("items", *[str(figures.n) for _, figures in columns])]
    for at, label in enumerate(CONFUSION_LABELS):
        rows.append((label, *[f"{figures.confusion[at]:.1f}".removesuffix(".0") for _, figures in columns]))
    for name, label in FIGURE_NAMES.items():
        rows.append((label, *[show_measure(figures.of(name)) for _, figures in columns]))
    return Table(("", *[name for name, _ in columns]), tuple(rows))


def _tabulate_reliability(judge: JudgeReport) -> Table:
    rows = [
        (
            *(name, f"{one.low:.3f}", f"{one.high:.3f}", f"{one.n:.0f}"),
            *[f"{number:.3f}" for number in (one.mean, one.share, one.mean - one.share)],
        )
        for name, bins in (("raw", judge.table_before), ("calibrated", judge.table_after))
        for one in bins
    ]
    return Table(("value", "from", "to", "items", "mean value", "share passing", "gap"), tuple(rows))


def _describe_band(judge: JudgeReport) -> str:
    band, terms = judge.review_band, judge.fit.guarantee
    if terms is not None:
        kept = terms.accepts_any
        what = "promises" if kept else "was to promise"
        return (
            f"The fit {what} {terms.share:.0%}; what it does not accept{'' if kept else ', all of it,'} is for humans."
        )
    if band is None:
        return (
            f"No review band was chosen: on the fitted items, leaving out the least sure {1 - MIN_DECIDED:.0%} or fewer made the "
            "rest no more accurate."
        )
    low, high = band.band
    return (
        f"Values from {low:.3f} to {high:.3f} go to a human. That leaves {band.coverage:.1%} of the held-out items decided"
        f", with an accuracy of {show_number(band.accuracy)} (all: {show_number(judge.after.of('accuracy').value)})."
    )


def _tabulate_promises(judge: JudgeReport) -> Table:
    """Tabulate what can be promised, as served, and how it held on items that no threshold has seen."""
    rows = [
        (
            f"{one.guarantee.share:.0%}",
            *map(show_measure, (one.coverage, one.agreement, one.passing, one.failing)),
            *map(show_number, (one.guarantee.passes_from, one.guarantee.fails_to)),
            "" if one.guarantee.accepts_any else "no threshold",
        )
        for one in judge.promises
    ]
    head = ("promise", "coverage", "agreement", "of passes", "of failures", "passes from raw", "fails to raw", "")
    return Table(head, tuple(rows))
