"""The sections of a report that are about one judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.calibrating.excerpts import shortened
from service.calibrating.figures import Figures
from service.calibrating.fitting import CurvePoint
from service.calibrating.layout import Link, Section, Table
from service.calibrating.results import JudgeReport
from service.calibrating.signs import Disagreement
from service.calibrating.wording import LABELS, NAMES, OVERVIEW, number, shown, signed
from service.stats.tallies import Bin


def judge_sections(judge: JudgeReport, anchor: str) -> Iterator[Section]:
    """What is told of a judge, from `anchor` on; the items that it got wrong have sections `<anchor>-1` and so on."""
    title = f"{judge.name} on {judge.criterion}"
    yield Section(title, 2, tuple(_sentences(judge)), (_beside_humans(judge),), judge, anchor)
    yield Section("Reliability", 3, tables=(_reliability(judge.table_before, judge.table_after),))
    if judge.slices:
        yield Section("By step and tool family", 3, tables=(_slices(judge),))
    yield Section("Accuracy against coverage", 3, (_abstaining(judge),), (_curve(judge),))
    if judge.worst:
        yield Section("Where judge and labels differ most", 3, tables=(_worst(judge, anchor),))
        for at, one in enumerate(judge.worst, 1):
            yield _item(one, judge, f"{anchor}-{at}")


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
            f"Asked again ({r.items} items, up to {r.samples} answers each): the verdict of two answers differs for a share of "
            f"{shown(r.flip_rate)} of items, the values of an item lie {r.spread:.3f} apart. This is the noise floor: no "
            "figure of this judge can be trusted further."
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


def _worst(judge: JudgeReport, anchor: str) -> Table:
    rows = [
        (
            Link(one.id, f"{anchor}-{at}"),
            ", ".join(one.labels),
            f"{one.raw:.3f}",
            f"{one.value:.3f}",
            shortened(one.excerpt.answer, BRIEF),
        )
        for at, one in enumerate(judge.worst, 1)
    ]
    return Table(("item", "labels", "raw", "calibrated", "answer"), tuple(rows))


BRIEF = 160
"""Characters of an answer in the table of all disagreements; the item's own section has more."""


def _item(one: Disagreement, judge: JudgeReport, anchor: str) -> Section:
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
    return Section(
        f"{one.id} (line {one.line})", 4, tables=(Table(("part", "what it is"), rows, parts=True),), anchor=anchor
    )
