"""Render the regression gate of a pull request as lines of text and as annotations."""

from __future__ import annotations

from collections.abc import Iterator

from service.cli.rendering.console import pluralize
from service.cli.rendering.github import Level, render_annotation
from service.reporting.regression import NumberChange, RegressionGate, RegressionStatus

LEVELS: dict[RegressionStatus, Level] = {"regressed": "error", "undecided": "error", "held": "notice"}


def list_regression_lines(gate: RegressionGate) -> Iterator[str]:
    """Describe the outcome of each gated number in a line."""
    if gate.reason:
        yield f"undecided: {gate.reason}"
    yield from (f"{one.status}: {_explain(one)}" for one in gate.numbers)


def list_regression_annotations(gate: RegressionGate) -> Iterator[str]:
    """Render the same as GitHub workflow commands."""
    if gate.reason:
        yield render_annotation("error", gate.reason, title="callgrade: undecided")
    for one in gate.numbers:
        yield render_annotation(LEVELS[one.status], _explain(one), title=f"callgrade: {one.name} {one.status}")


def _explain(one: NumberChange) -> str:
    if not one.cases:
        return f"no case of {one.name} to compare"
    text = f"{one.name} changed by {_render(one.best, one.best_interval)} over {pluralize(one.cases, 'case')}"
    if not one.open:
        return text
    return f"{text}; or by {_render(one.worst, one.worst_interval)}, depending on {pluralize(one.open, 'open case')}"


def _render(change: float, interval: tuple[float, float]) -> str:
    return f"{change:+.3f} (95 % interval {interval[0]:+.3f} to {interval[1]:+.3f})"
