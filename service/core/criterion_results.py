"""How the outcomes of a criterion become one value, at worst and at best too: their mean, or the least of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import fsum
from typing import NamedTuple

from service.core.outcome import (
    ANYTHING,
    PERFECT,
    Bounds,
    Errored,
    Outcome,
    PartlyOpenScore,
    Scored,
    SkipCause,
    Skipped,
)
from service.core.rubric import CompiledCriterion


class CriterionWorth(NamedTuple):
    """What a criterion comes to in one world."""

    value: float
    """The estimate in [0, 1]: of what a judge scored its own or its calibrated value."""
    decided: float
    """The same with 1 for what a judge passed and 0 for what it did not. Thresholds look at this."""
    failed: bool
    """Whether an outcome did not pass."""


class CriterionResult(NamedTuple):
    """A criterion folded over its outcomes."""

    criterion: CompiledCriterion
    measured: CriterionWorth | None
    """Over what was measured; None where nothing was."""
    coverage: float | None
    """The share of applicable outcomes that were measured; None where none applies."""
    worst: CriterionWorth | None
    """With all that is open at 0; None where nothing was measured and nothing is open."""
    best: CriterionWorth | None
    """With all that is open at 1."""
    clean: bool
    """Whether everything that applies was measured and passed."""

    @property
    def failed(self) -> bool:
        """Whether a measured outcome did not pass."""
        return self.measured is not None and self.measured.failed


PERFECT_WORTH = CriterionWorth(1.0, 1.0, False)


def fold_criterion(criterion: CompiledCriterion, outcomes: Sequence[Outcome]) -> CriterionResult:
    """The criterion over its outcomes: their mean or their least value. What is blocked counts as 0."""
    if outcomes[1:]:
        return _fold_general(criterion, outcomes)
    only = outcomes[0]
    if only is PERFECT:
        return fold_perfect(criterion)
    if type(only) is Scored:
        return _fold_scored(criterion, only)
    if type(only) is Skipped:
        return _fold_skipped(criterion, only.cause, only.open, only.bounds)
    return _fold_general(criterion, outcomes)


def _fold_general(criterion: CompiledCriterion, outcomes: Sequence[Outcome]) -> CriterionResult:
    applying = [one for one in outcomes if type(one) is not Skipped or one.cause != "not_applicable"]
    if not applying:
        return _fold_nothing(criterion)
    if not [one for one in applying if one is not PERFECT]:
        return fold_perfect(criterion)
    if not [one for one in applying if type(one) is not Scored]:
        return _fold_all_scored(criterion, applying)
    known = [_find_bounds(outcome) for outcome in applying if isinstance(outcome, Scored) or _is_blocked(outcome)]
    opened = [
        one.bounds or ANYTHING
        for one in applying
        if isinstance(one, Errored) or (isinstance(one, Skipped) and one.open)
    ]
    failed = any([isinstance(outcome, Scored) and not outcome.passed for outcome in applying])  # noqa: C419
    measured = _fold_measured(criterion, applying, failed=failed) if known else None
    worst = best = measured
    if opened or any([each.low != each.high for each in known]):  # noqa: C419
        spans = [*known, *opened]
        worst = _fold_worth(criterion, [(s.low, s.decided_low) for s in spans], failed=failed or bool(opened))
        best = _fold_worth(criterion, [(s.high, s.decided_high) for s in spans], failed=failed)
    clean = not failed and all([isinstance(outcome, Scored) for outcome in applying])  # noqa: C419
    return CriterionResult(criterion, measured, len(known) / len(applying), worst, best, clean)


# What most criteria of most traces come to is made once.
@lru_cache(maxsize=4096)
def fold_perfect(criterion: CompiledCriterion) -> CriterionResult:
    """The criterion where every outcome is PERFECT."""
    return CriterionResult(criterion, PERFECT_WORTH, 1.0, PERFECT_WORTH, PERFECT_WORTH, True)


@lru_cache(maxsize=4096)
def _fold_skipped(
    criterion: CompiledCriterion,
    cause: SkipCause,
    open_: bool,  # noqa: FBT001 (kept by all that counts of an outcome)
    bounds: Bounds | None,
) -> CriterionResult:
    return _fold_general(criterion, (Skipped(cause, "", open=open_, bounds=bounds),))


@lru_cache(maxsize=4096)
def _fold_nothing(criterion: CompiledCriterion) -> CriterionResult:
    return CriterionResult(criterion, None, None, None, None, True)


def _fold_scored(criterion: CompiledCriterion, outcome: Scored) -> CriterionResult:
    """Most criteria of a step: one outcome, of code."""
    worth = CriterionWorth(outcome.value, outcome.value, not outcome.passed)
    return CriterionResult(criterion, worth, 1.0, worth, worth, outcome.passed)


def _fold_all_scored(criterion: CompiledCriterion, outcomes: Sequence[Outcome]) -> CriterionResult:
    """Most criteria of a trace: outcomes of code, none of them open."""
    failed = not all([outcome.passed for outcome in outcomes if isinstance(outcome, Scored)])  # noqa: C419
    worth = _fold_measured(criterion, outcomes, failed=failed)
    return CriterionResult(criterion, worth, 1.0, worth, worth, not failed)


def _is_blocked(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "blocked"


NOTHING_GAINED = Bounds(0.0, 0.0, 0.0, 0.0)


def _find_bounds(outcome: Outcome) -> Bounds:
    if not isinstance(outcome, Scored):
        return NOTHING_GAINED
    if isinstance(outcome, PartlyOpenScore) and outcome.bounds is not None:
        return outcome.bounds
    value, decision = outcome.value, outcome.decision
    return Bounds(value, value, decision, decision)


def _fold_measured(criterion: CompiledCriterion, applying: Iterable[Outcome], *, failed: bool) -> CriterionWorth:
    pairs = [
        (outcome.value, outcome.decision) if isinstance(outcome, Scored) else (0.0, 0.0)
        for outcome in applying
        if isinstance(outcome, Scored) or _is_blocked(outcome)
    ]
    return _fold_worth(criterion, pairs, failed=failed)


def _fold_worth(criterion: CompiledCriterion, pairs: Sequence[tuple[float, float]], *, failed: bool) -> CriterionWorth:
    if criterion.takes_minimum:
        return CriterionWorth(min([value for value, _ in pairs]), min([decided for _, decided in pairs]), failed)
    size = len(pairs)
    return CriterionWorth(
        fsum([value for value, _ in pairs]) / size, fsum([decided for _, decided in pairs]) / size, failed
    )
