"""Render a comparison of two runs as sections of a document."""

from __future__ import annotations

from collections.abc import Iterator

from service.cli.rendering.console import pluralize
from service.cli.rendering.summary_sections import MAX_ROWS, render_more
from service.reporting.comparison import CaseChange, Comparison, Difference
from service.reporting.document import Section, Table
from service.reporting.numbers import render_number


def build_comparison_sections(comparison: Comparison) -> Iterator[Section]:
    """Build the sections of a comparison: overview, differences, changed cases."""
    lines = [f"{pluralize(comparison.cases, 'case')} in both"]
    for name, names in (("a", comparison.only_a), ("b", comparison.only_b)):
        if names:
            lines.append(f"only in {name}, not counted: {pluralize(len(names), 'case')}")
    if comparison.rubrics_differ:
        lines.append("the two runs were scored with different rubrics")
    yield Section("Compared", lines=tuple(lines))
    head = ("b against a", "a", "b", "b - a", "95% interval", "better", "worse", "cases", "open", "p")
    numbers = [comparison.passed, comparison.score, *comparison.stages]
    rows = (
        *(_build_difference_row(one) for one in numbers),
        *(_build_difference_row(one, "criterion ") for one in comparison.criteria),
    )
    yield Section("Differences", (Table(head, rows),))
    if comparison.changes:
        rows = tuple(_build_change_row(one) for one in comparison.changes[:MAX_ROWS])
        table = Table(("case", "kind", "a", "b", "failed at", "criteria"), rows)
        yield Section("Changed cases", (table,), render_more(comparison.changes))


def _build_difference_row(one: Difference, before: str = "") -> tuple[str, ...]:
    interval = "-" if one.low is None or one.high is None else f"{one.low:+.2f} to {one.high:+.2f}"
    return (
        before + one.name,
        render_number(one.a.value),
        render_number(one.b.value),
        "-" if one.difference is None else f"{one.difference:+.3f}",
        interval,
        str(one.improved),
        str(one.worsened),
        str(one.n),
        str(one.open),
        "-" if one.p_value is None else f"{one.p_value:.3f}",
    )


def _build_change_row(one: CaseChange) -> tuple[str, ...]:
    case = one.case if one.trial is None else f"{one.case} ({one.trial})"
    a, b = (f"{side.verdict} {render_number(side.score)}" for side in (one.a, one.b))
    criteria = [*(f"+{name}" for name in one.now_passing), *(f"-{name}" for name in one.now_failing)]
    return case, one.kind, a, b, one.b.broke_at or "-", " ".join(criteria) or "-"
