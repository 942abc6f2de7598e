"""Render the regression gate of a pull request as lines of text and as annotations."""

from __future__ import annotations

from collections.abc import Iterator

from service.cli.rendering.console import pluralize
from service.cli.rendering.github import Level, render_annotation
from service.reporting.escaping import escape_unprintable
from service.reporting.proved_regressions import ProvedRegression
from service.reporting.regression import NumberChange, RegressionGate, RegressionStatus

LEVELS: dict[RegressionStatus, Level] = {"regressed": "error", "undecided": "error", "held": "notice"}


MAX_PROVED = 20
"""How many proved regressions are listed."""


def list_regression_lines(gate: RegressionGate) -> Iterator[str]:
    """Describe each proved regression and each gated number in a line."""
    if gate.reason:
        yield f"undecided: {gate.reason}"
    yield from (f"{one.status}: {_explain_proved(one)}" for one in gate.proved[:MAX_PROVED])
    if len(gate.proved) > MAX_PROVED:
        yield f"and {len(gate.proved) - MAX_PROVED} more"
    yield from (f"{one.status}: {_explain(one)}" for one in gate.numbers)


def list_regression_annotations(gate: RegressionGate) -> Iterator[str]:
    """Render the same as GitHub workflow commands."""
    if gate.reason:
        yield render_annotation("error", gate.reason, title="callgrade: undecided")
    for one in gate.numbers:
        yield render_annotation(LEVELS[one.status], _explain(one), title=f"callgrade: {one.name} {one.status}")
    for one in gate.proved[:MAX_PROVED]:
        yield render_annotation("error", _explain_proved(one), title=f"callgrade: {one.status}")


def _explain_proved(one: ProvedRegression) -> str:
    return escape_unprintable(
        f"{one.criterion} in {one.case}: {one.why}" if one.criterion else f"{one.case}: {one.why}"
    )


def _explain(one: NumberChange) -> str:
    if not one.cases:
        return f"no case of {one.name} to compare"
    text = f"{one.name} changed by {_render(one.best, one.best_interval)} over {pluralize(one.cases, 'case')}"
    if not one.open:
        return text
    return f"{text}; or by {_render(one.worst, one.worst_interval)}, depending on {pluralize(one.open, 'open case')}"


def _render(change: float, interval: tuple[float, float]) -> str:
    return f"{change:+.3f} (95 % interval {interval[0]:+.3f} to {interval[1]:+.3f})"
