"""Fold the outcomes of a criterion into one value, as measured, at worst and at best: by their mean or their minimum."""

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
    """The values of a criterion in one world: with open outcomes left out, at worst, or at best."""

    value: float
    """The estimate in [0, 1]; judged outcomes count with their own or their calibrated value."""
    decided: float
    """The same, but judged outcomes count 1 if they passed and 0 if not. Thresholds use this."""
    failed: bool
    """Whether any outcome did not pass."""


class CriterionResult(NamedTuple):
    """The result of folding a criterion's outcomes."""

    criterion: CompiledCriterion
    measured: CriterionWorth | None
    """Over the measured outcomes; None if there are none."""
    coverage: float | None
    """The share of applicable outcomes that were measured; None if none applies."""
    worst: CriterionWorth | None
    """With every open outcome at 0; None if no outcome is measured or open."""
    best: CriterionWorth | None
    """With every open outcome at 1; None as for `worst`."""
    clean: bool
    """Whether every applicable outcome was measured and passed."""

    @property
    def failed(self) -> bool:
        """Whether any measured outcome did not pass."""
        return self.measured is not None and self.measured.failed


PERFECT_WORTH = CriterionWorth(1.0, 1.0, False)


def fold_criterion(criterion: CompiledCriterion, outcomes: Sequence[Outcome]) -> CriterionResult:
    """Fold a criterion's outcomes by mean or minimum. A blocked outcome counts as 0."""
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


# Most criteria of most traces have the same few results, so these are cached.
@lru_cache(maxsize=4096)
def fold_perfect(criterion: CompiledCriterion) -> CriterionResult:
    """Return the result of a criterion whose outcomes are all PERFECT."""
    return CriterionResult(criterion, PERFECT_WORTH, 1.0, PERFECT_WORTH, PERFECT_WORTH, True)


@lru_cache(maxsize=4096)
def _fold_skipped(
    criterion: CompiledCriterion,
    cause: SkipCause,
    open_: bool,  # noqa: FBT001 (part of the cache key)
    bounds: Bounds | None,
) -> CriterionResult:
    return _fold_general(criterion, (Skipped(cause, "", open=open_, bounds=bounds),))


@lru_cache(maxsize=4096)
def _fold_nothing(criterion: CompiledCriterion) -> CriterionResult:
    return CriterionResult(criterion, None, None, None, None, True)


def _fold_scored(criterion: CompiledCriterion, outcome: Scored) -> CriterionResult:
    """Fold the single outcome, decided by code, that most criteria of a step have."""
    worth = CriterionWorth(outcome.value, outcome.value, not outcome.passed)
    return CriterionResult(criterion, worth, 1.0, worth, worth, outcome.passed)


def _fold_all_scored(criterion: CompiledCriterion, outcomes: Sequence[Outcome]) -> CriterionResult:
    """Fold outcomes that code decided, none of them open: most criteria of a trace."""
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
