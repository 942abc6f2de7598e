"""The sections of a report about one judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from service.calibration.diagnostics import Disagreement
from service.calibration.figures import Figures
from service.calibration.fitting import CurvePoint
from service.calibration.report.excerpts import shorten
from service.calibration.report.plots import draw_plots
from service.calibration.report.wording import (
    FIGURE_NAMES,
    ORIGIN_NAMES,
    SHORT_FIGURE_NAMES,
    show_delta,
    show_measure,
    show_number,
)
from service.calibration.results import JudgeReport
from service.reporting.document import Figure, Link, Section, Table
from service.stats.tallies import Bin


def build_judge_sections(judge: JudgeReport, anchor: str) -> Iterator[Section]:
    """Build the sections about a judge, anchored at `anchor`; the items it got wrong follow at `<anchor>-1` and so on."""
    yield Section(
        f"{judge.name} on {judge.criterion}",
        (_render_beside_humans(judge),),
        text=tuple(_render_sentences(judge)),
        level=2,
        figure=_build_figure(judge),
        anchor=anchor,
    )
    yield Section("Reliability", (_render_reliability(judge.table_before, judge.table_after),), folded=True)
    yield Section(
        "Accuracy against coverage",
        (_render_promises(judge), _render_curve(judge)),
        text=(_render_review_band(judge),),
        folded=True,
    )
    if judge.slices:
        yield Section("By step and tool family", (_render_slices(judge),), folded=True)
    if judge.worst:
        yield Section("Where judge and labels differ most", (_render_worst(judge, anchor),), folded=True)
        for at, one in enumerate(judge.worst, 1):
            yield _render_item(one, judge, f"{anchor}-{at}")


def _build_figure(judge: JudgeReport) -> Figure:
    return Figure(
        partial(draw_plots, judge),
        f"Reliability, values by label, and accuracy against coverage of {judge.name}; the tables below hold the numbers",
        'No plots: matplotlib is not installed (pip install "callgrade[calibration]").',
    )


def _render_sentences(judge: JudgeReport) -> Iterator[str]:
    status = "calibrated" if judge.calibrated else "uncalibrated"
    yield (
        f"Against {ORIGIN_NAMES[judge.origin]}. Fit {judge.fit_id}: {judge.method}, {status}; {judge.fitted} items of "
        f"{judge.fitted_groups} groups fitted, {judge.held_out} items of {judge.held_out_groups} groups scored while held out, "
        f"{judge.missing} labelled items without its answer. Passes from {judge.threshold:.3f} upwards."
    )
    if judge.ece_by_chance is not None:
        yield f"By chance alone, exactly right values would show an ECE of {judge.ece_by_chance:.3f} on so many items."
    if judge.ece_over_splits:
        s = judge.ece_over_splits
        yield (
            f"ECE with groups dealt out {s.splits} other ways: median {s.median:.3f}, 10th percentile {s.low:.3f}, 90th "
            f"{s.high:.3f}."
        )
    if judge.retest:
        r = judge.retest
        yield (
            f"Asked again ({r.items} items, up to {r.samples} answers each): the verdict of two answers differs for a share of "
            f"{show_measure(r.flip_rate)} of items, the values of an item lie {r.spread:.3f} apart. This is the noise floor: no "
            "figure of this judge can be trusted further."
        )
    if judge.length:
        b = judge.length
        yield (
            f"Rank correlation with the length of the answer: its value {show_delta(b.score)}, the label {show_delta(b.label)}, "
            f"its value among items of one label {show_delta(b.within)}."
        )


def _render_beside_humans(judge: JudgeReport) -> Table:
    """Render each figure raw and calibrated, where humans agree, and for humans."""
    columns: list[tuple[str, Figures | None]] = [
        (f"raw, from {judge.own_threshold:g}", judge.own),
        (f"calibrated, from {judge.threshold:.3f}", judge.after),
        ("calibrated, where humans agree", judge.where_humans_agree),
        ("human beside human", judge.humans),
    ]
    kept = [(name, figures) for name, figures in columns if figures is not None]
    rows = [("items", *[str(figures.n) for _, figures in kept])]
    rows += [(label, *[_render_cell(figures, at) for _, figures in kept]) for at, label in enumerate(CONFUSION_LABELS)]
    rows += [(label, *[show_measure(figures.of(name)) for _, figures in kept]) for name, label in FIGURE_NAMES.items()]
    return Table(("", *[name for name, _ in kept]), tuple(rows))


CONFUSION_LABELS = ("pass, labels pass", "pass, labels fail", "fail, labels pass", "fail, labels fail")


def _render_cell(figures: Figures, at: int) -> str:
    return f"{figures.confusion[at]:.1f}".removesuffix(".0")


def _render_reliability(before: Sequence[Bin], after: Sequence[Bin]) -> Table:
    rows = [(name, *_render_bin(one)) for name, bins in (("raw", before), ("calibrated", after)) for one in bins]
    return Table(("value", "from", "to", "items", "mean value", "share passing", "gap"), tuple(rows))


def _render_bin(one: Bin) -> tuple[str, ...]:
    numbers = (one.mean, one.share, one.mean - one.share)
    return f"{one.low:.3f}", f"{one.high:.3f}", f"{one.n:.0f}", *[f"{number:.3f}" for number in numbers]


def _render_slices(judge: JudgeReport) -> Table:
    rows = [
        (
            one.by,
            one.name,
            str(one.figures.n),
            *[_render_pair(one.figures, one.humans, name) for name in SHORT_FIGURE_NAMES],
        )
        for one in judge.slices
    ]
    return Table(("by", "name", "items", *[f"{name}; human" for name in SHORT_FIGURE_NAMES.values()]), tuple(rows))


def _render_pair(figures: Figures, humans: Figures | None, name: str) -> str:
    beside = "-" if humans is None else show_number(humans.of(name).value)
    return f"{show_measure(figures.of(name))}; {beside}"


def _render_review_band(judge: JudgeReport) -> str:
    review_band = judge.review_band
    if judge.guarantee is not None:
        return f"The fit promises {judge.guarantee:.0%}; what it does not accept is for humans or the next judge."
    if review_band is None:
        return (
            f"No band was chosen: on the fitted items, leaving out the least sure {1 - judge.least_decided:.0%} or fewer made "
            "the rest no more accurate."
        )
    low, high = review_band.band
    return (
        f"Values from {low:.3f} to {high:.3f} go to a human. That leaves {review_band.coverage:.1%} of the held-out items decided"
        f", with an accuracy of {show_number(review_band.accuracy)} (all: {show_number(judge.after.of('accuracy').value)})."
    )


def _render_promises(judge: JudgeReport) -> Table:
    """Render what can be promised, as served, and how it held on items that no threshold has seen."""
    rows = [
        (
            f"{one.guarantee.share:.0%}",
            show_measure(one.coverage),
            *map(show_measure, (one.agreement, one.passing, one.failing)),
            *map(show_number, (one.guarantee.passes_from, one.guarantee.fails_to)),
            "" if one.guarantee.accepts_any else "no threshold",
        )
        for one in judge.promises
    ]
    head = ("promise", "coverage", "agreement", "of passes", "of failures", "passes from raw", "fails to raw", "")
    return Table(head, tuple(rows))


def _render_curve(judge: JudgeReport) -> Table:
    rows = [(f"{p.margin:.3f}", f"{p.coverage:.3f}", f"{p.accuracy:.3f}") for p in _thin_points(judge.curve, 12)]
    return Table(("least margin", "coverage", "accuracy"), tuple(rows))


def _thin_points(points: Sequence[CurvePoint], count: int) -> list[CurvePoint]:
    """Return the first point, the last one, and evenly spaced ones between."""
    if len(points) <= count:
        return list(points)
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def _render_worst(judge: JudgeReport, anchor: str) -> Table:
    rows = [
        (
            Link(one.id, f"{anchor}-{at}"),
            ", ".join(one.labels),
            f"{one.raw:.3f}",
            f"{one.value:.3f}",
            shorten(one.excerpt.answer, MAX_BRIEF_CHARS),
        )
        for at, one in enumerate(judge.worst, 1)
    ]
    return Table(("item", "labels", "raw", "calibrated", "answer"), tuple(rows))


MAX_BRIEF_CHARS = 160
"""The most characters of an answer in the table of disagreements; the item's own section shows more."""


def _render_item(one: Disagreement, judge: JudgeReport, anchor: str) -> Section:
    verdict = "pass" if one.value >= judge.threshold else "fail"
    parts = {
        "question": one.excerpt.question,
        "payload": one.excerpt.payload,
        "answer": one.excerpt.answer,
        "labels": ", ".join(one.labels),
        "judge": f"{verdict}: {one.value:.3f} from {one.raw:.3f}, passing from {judge.threshold:.3f}",
        "its reason": one.reason,
    }
    rows = tuple([(name, text) for name, text in parts.items() if text])
    table = Table(("part", "what it is"), rows, parts=True)
    return Section(f"{one.id} (line {one.line})", (table,), level=4, anchor=anchor, folded=True)
