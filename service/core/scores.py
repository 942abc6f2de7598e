"""How outcomes become scores, coverage and verdicts: criteria are folded, stages weighed, thresholds applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Literal, NamedTuple

from service.core.outcome import PERFECT, Errored, Outcome, Scored
from service.core.rubric import Column, Rubric, Stage, Thresholds

Verdict = Literal["pass", "warn", "fail", "abstain", "not_applicable"]

NOISE = 1e-9
"""Scores this close to a threshold have reached it: weights such as 0.7 and 0.3 do not add up exactly."""


class Mark(NamedTuple):
    """A criterion folded over its outcomes."""

    column: Column
    value: float | None
    coverage: float | None
    """The share of applicable outcomes that have a value; None where none applies."""
    failed: bool
    """Whether an outcome did not pass."""
    clean: bool
    """Whether everything that applies was measured and passed."""

    @property
    def full(self) -> bool:
        """Whether it was measured, in full, as 1.0, and counts."""
        return self.value == 1.0 and self.clean and self.column.weight > 0.0


def mark_of(column: Column, cells: Sequence[tuple[object, Outcome]]) -> Mark:
    """The criterion folded over its outcomes: their mean or their least value. What is blocked counts as 0."""
    values: list[float] = []
    unknown = blocked = 0
    failing = False
    for _, outcome in cells:
        if outcome is PERFECT:
            values.append(1.0)
        elif isinstance(outcome, Scored):
            values.append(outcome.value)
            failing = failing or not outcome.passed
        elif isinstance(outcome, Errored) or outcome.cause not in ("blocked", "not_applicable"):
            unknown += 1
        elif outcome.cause == "blocked":
            values.append(0.0)
            blocked += 1
    if not values:
        return Mark(column, None, 0.0 if unknown else None, False, not unknown)
    value = min(values) if column.takes_worst else fsum(values) / len(values)
    coverage = len(values) / (len(values) + unknown)
    return Mark(column, value, coverage, failing, not (failing or unknown or blocked))


class Total(NamedTuple):
    """A weighted mean with the share of weight that was measured."""

    score: float | None
    coverage: float | None


FULL = Total(1.0, 1.0)
ABSENT = Total(None, None)

Part = tuple[float, float | None, float | None]
"""Weight, score (None: not measured), coverage (None: does not apply)."""


def _mean(parts: Sequence[Part]) -> Total:
    """The weighted mean. Sums are exactly rounded, so that no order of criteria changes a digit."""
    if len(parts) == 1 and parts[0][0]:
        return Total(parts[0][1], parts[0][2])
    scored = [(weight, score) for weight, score, _ in parts if score is not None]
    applicable = [(weight, coverage) for weight, _, coverage in parts if coverage is not None]
    return Total(_share(scored), _share(applicable))


def _share(pairs: list[tuple[float, float]]) -> float | None:
    whole = fsum([weight for weight, _ in pairs])
    return min(1.0, fsum([weight * value for weight, value in pairs]) / whole) if whole else None


def _weighed(marks: Iterable[Mark]) -> Total:
    return _mean([(mark.column.weight, mark.value, mark.coverage) for mark in marks])


Standing = tuple[Stage, Verdict, Total]


def standings(marks: Sequence[Mark], rubric: Rubric) -> list[Standing]:
    """How each stage that has criteria stands, in the order of the contract."""
    by_stage: dict[Stage, list[Mark]] = {}
    for mark in marks:
        by_stage.setdefault(mark.column.stage, []).append(mark)
    return [(stage, *_standing(group, rubric.thresholds)) for stage, group in by_stage.items()]


def _standing(marks: list[Mark], thresholds: Thresholds) -> tuple[Verdict, Total]:
    applying = [mark for mark in marks if mark.coverage is not None]
    if not applying:
        return "not_applicable", ABSENT
    if all([mark.full for mark in applying]):  # noqa: C419 (a list is quicker, and short)
        return "pass", FULL  # what the rest would come to
    total = _weighed(applying)
    return _verdict(applying, total, thresholds), total


def total_of(marks: Sequence[Mark], stages: Sequence[Standing], rubric: Rubric) -> Total:
    """The score and coverage of a trace or step: the weighted mean over its stages, or over all criteria."""
    if rubric.stages is None:
        return _weighed(marks)
    weights = rubric.stage_weights
    return _mean([(weights[stage], part.score, part.coverage) for stage, _, part in stages])


def _verdict(marks: Iterable[Mark], total: Total, thresholds: Thresholds) -> Verdict:
    if any(mark.failed and mark.column.must_pass for mark in marks):
        return "fail"
    if total.coverage is None:
        return "not_applicable"
    least = thresholds.min_coverage - NOISE
    if total.score is None or total.coverage < least or any(_unmeasured(mark, least) for mark in marks):
        return "abstain"
    if total.score < thresholds.fail - NOISE:
        return "fail"
    return "warn" if total.score < thresholds.warn - NOISE else "pass"


def _unmeasured(mark: Mark, least: float) -> bool:
    """Whether something that was asked for, and must pass, could hardly be measured."""
    return mark.column.insists and mark.coverage is not None and mark.coverage < least


def overall(marks: Iterable[Mark], stages: Iterable[Standing], total: Total, rubric: Rubric) -> Verdict:
    """The verdict on all stages together."""
    verdict = _verdict(marks, total, rubric.thresholds)
    if rubric.verdict == "score" or verdict in ("abstain", "not_applicable"):
        return verdict
    return max([verdict, *[of_stage for _, of_stage, _ in stages]], key=_SEVERITY.__getitem__)


_SEVERITY: dict[Verdict, int] = {"not_applicable": 0, "abstain": 0, "pass": 1, "warn": 2, "fail": 3}


def step_standing(rubric: Rubric, cells: list[tuple[Column, Outcome]]) -> tuple[Verdict, Total]:
    """How one step stands by its own outcomes."""
    if cells and all(outcome is PERFECT and column.weight for column, outcome in cells):
        return "pass", FULL  # what the rest would come to
    marks = [mark_of(cell[0], (cell,)) for cell in cells]
    stages = standings(marks, rubric)
    total = total_of(marks, stages, rubric)
    return overall(marks, stages, total, rubric), total
