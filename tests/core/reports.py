"""What tests look for in a report."""

from __future__ import annotations

from typing import Any

from service import Report


def outcomes(report: Report, criterion: str | None = None) -> list[Any]:
    """What a criterion said, or all of them: of each step, then of what belongs to none."""
    of_steps = [one for step in report.steps for name, one in step.outcomes.items() if criterion in (None, name)]
    loose = [each.outcome for one in report.criteria if criterion in (None, one.id) for each in one.outcomes]
    return of_steps + loose
