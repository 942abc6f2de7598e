"""Render comparisons of two judges as sections of tables and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from service.calibration.comparison import (
    JudgeComparison,
)
from service.calibration.report.wording import FIGURE_NAMES, show_measure
from service.cli.rendering.console import pluralize
from service.cli.rendering.summary_sections import MAX_ROWS
from service.reporting.document import Section, Table


def build_comparison_sections(comparisons: Iterable[JudgeComparison]) -> Iterator[Section]:
    """Build a section for each comparison, and one for the items on which the two judges differ."""
    for one in comparisons:
        yield Section(f"{one.b} against {one.a} on {one.criterion}", (_build_figures(one),), tuple(_list_lines(one)))
        if one.differing:
            yield _build_differing(one)


def _build_figures(one: JudgeComparison) -> Table:
    rows = [
        (FIGURE_NAMES[row.name], show_measure(row.a), show_measure(row.b), show_measure(row.difference))
        for row in one.figures
    ]
    return Table(("", "a", "b", "b - a"), tuple(rows))


def _list_lines(one: JudgeComparison) -> Iterator[str]:
    yield f"{pluralize(one.items, 'item')} of {pluralize(one.groups, 'group')}; intervals at 95 % by groups, both sides together"
    yield (
        f"both right {one.both_right}, a alone {one.a_right}, b alone {one.b_right}, neither {one.neither_right}; "
        f"McNemar's exact test: p = {one.p_value:.3g}"
        + (", for items that were independent" if one.groups < one.items else "")
    )
    for side, count in (("a", one.only_a), ("b", one.only_b)):
        if count:
            yield f"only in {side}, not counted: {pluralize(count, 'item')}"


def _build_differing(one: JudgeComparison) -> Section:
    rows = [
        (item.id, "pass" if item.label else "fail", f"{item.a:.3f}", f"{item.b:.3f}", "b" if item.b_is_right else "a")
        for item in one.differing[:MAX_ROWS]
    ]
    more = len(one.differing) - len(rows)
    lines = (f"and {more} more; --format json has all",) if more else ()
    return Section(
        f"Where they differ: {pluralize(len(one.differing), 'item')}",
        (Table(("item", "label", "a", "b", "right"), tuple(rows)),),
        lines,
    )
