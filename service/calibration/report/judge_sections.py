"""The sections of a report about one judge."""

from __future__ import annotations

from collections.abc import Iterator

from service.calibration.figures import Figures
from service.calibration.fitting import MIN_DECIDED
from service.calibration.report.wording import (
    FIGURE_NAMES,
    ORIGIN_NAMES,
    show_measure,
    show_number,
)
from service.calibration.results import JudgeReport
from service.reporting.document import Curve, Plot, Section, Table

CONFUSION_LABELS = ("pass, labels pass", "pass, labels fail", "fail, labels pass", "fail, labels fail")


def build_judge_sections(judge: JudgeReport, anchor: str) -> Iterator[Section]:
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
    use = judge.discrimination.use
    status = (
        f"not used, as its judge is {use}" if use != "useful" else "calibrated" if judge.calibrated else "uncalibrated"
    )
    yield (
        f"Against {ORIGIN_NAMES[judge.origin]}. Fit {judge.fit_id}: {judge.method}, {status}; {judge.fitted} items of "
        f"{judge.fitted_groups} groups fitted, {judge.held_out} items of {judge.held_out_groups} groups scored while held out, "
        f"{judge.missing} labelled items without its answer. Passes from {judge.threshold:.3f} upwards."
    )
    if judge.retest:
        r = judge.retest
        yield (
            f"Asked again ({r.items} items): the verdict of two answers differs for a share of {show_measure(r.flip_rate)} of "
            "items. This is the noise floor: no figure of this judge can be trusted further."
        )


def _tabulate_figures(judge: JudgeReport) -> Table:
    """Tabulate each figure raw, calibrated, and for humans."""
    columns: list[tuple[str, Figures]] = [
        (f"raw, from {judge.own_threshold:g}", judge.own),
        (f"calibrated, from {judge.threshold:.3f}", judge.after),
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
    band = judge.review_band
    if judge.guarantee is not None:
        kept = any(one.guarantee.share == judge.guarantee and one.guarantee.accepts_any for one in judge.promises)
        what = "promises" if kept else "was to promise"
        return f"The fit {what} {judge.guarantee:.0%}; what it does not accept{'' if kept else ', all of it,'} is for humans."
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
