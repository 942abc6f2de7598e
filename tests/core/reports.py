"""Rubrics of one check, and what tests look for in a report."""

from __future__ import annotations

from typing import Any

from service import Report, score


def outcomes(report: Report, criterion: str | None = None) -> list[Any]:
    """What a criterion said, or all of them: of each step, then of what belongs to none."""
    of_steps = [one for step in report.steps for name, one in step.outcomes.items() if criterion in (None, name)]
    loose = [each.outcome for one in report.criteria if criterion in (None, one.id) for each in one.outcomes]
    return of_steps + loose


def one_check(kind: str, **settings: Any) -> dict[str, Any]:
    """A rubric with one criterion, `it`."""
    return {"id": "one", "criteria": [{"id": "it", "stage": "arguments", "check": {"kind": kind, **settings}}]}


def score_argument(wanted: Any, given: Any, **settings: Any) -> float | None:
    """The score of the argument `a` of a call, by what is wanted of it."""
    trace = {"format": "callgrade", "events": [{"call": {"name": "f", "arguments": {"a": given}}}]}
    expected = {"calls": [{"tool": "f", "args": {"a": wanted}}]}
    return score({"rubric": one_check("arguments", **settings), "trace": trace, "expected": expected}).score
