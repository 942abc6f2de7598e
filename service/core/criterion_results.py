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
    """What a criterion is worth in one world: with open outcomes left out, at worst, or at best."""

    value: float
    """In [0, 1]; a judged outcome counts 1 if it passed and 0 if not."""
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
    lowest: CriterionWorth | None
    """As `worst`, with what was left out at 0 too; None if none applies."""
    highest: CriterionWorth | None
    clean: bool
    """Whether every applicable outcome was measured and passed."""

    @property
    def worlds(self) -> tuple[CriterionWorth | None, ...]:
        """What it is worth as measured, at worst, at best, at its lowest and at its highest."""
        return self.measured, self.worst, self.best, self.lowest, self.highest

    @property
    def failed(self) -> bool:
        """Whether any measured outcome did not pass."""
        return self.measured is not None and self.measured.failed


PERFECT_WORTH = CriterionWorth(1.0, False)


def fold_criterion(criterion: CompiledCriterion, outcomes: Sequence[Outcome]) -> CriterionResult:
    """Fold a criterion's outcomes by mean or minimum. A blocked outcome counts as 0."""
    if outcomes[1:]:
        return _fold_general(criterion, outcomes)
    only = outcomes[0]
    if only is PERFECT:
        return fold_perfect(criterion)
    if type(only) is Scored:
        return _fold_decided(criterion, CriterionWorth(only.value, not only.passed))
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
        failed = not all([outcome.passed for outcome in applying if isinstance(outcome, Scored)])  # noqa: C419
        return _fold_decided(criterion, _fold_measured(criterion, applying, failed=failed))
    known = [_find_bounds(outcome) for outcome in applying if isinstance(outcome, Scored) or _is_blocked(outcome)]
    others = [one for one in applying if not (isinstance(one, Scored) or _is_blocked(one))]
    opened = [one.bounds or ANYTHING for one in others if isinstance(one, Errored) or one.open]
    failed = any([isinstance(outcome, Scored) and not outcome.passed for outcome in applying])  # noqa: C419
    measured = _fold_measured(criterion, applying, failed=failed) if known else None
    worst = best = measured
    if opened or any([each.low != each.high for each in known]):  # noqa: C419
        worst, best = _fold_ends(criterion, [*known, *opened], failed=failed, undecided=bool(opened))
    lowest, highest = worst, best
    if others[len(opened) :]:
        spans = [*known, *opened, *[ANYTHING] * (len(others) - len(opened))]
        lowest, highest = _fold_ends(criterion, spans, failed=failed, undecided=True)
    clean = not failed and not others and all([isinstance(outcome, Scored) for outcome in applying])  # noqa: C419
    return CriterionResult(criterion, measured, len(known) / len(applying), worst, best, lowest, highest, clean)


# Most criteria of most traces have the same few results, so these are cached.
@lru_cache(maxsize=4096)
def fold_perfect(criterion: CompiledCriterion) -> CriterionResult:
    """Return the result of a criterion whose outcomes are all PERFECT."""
    return _fold_decided(criterion, PERFECT_WORTH)


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
    return CriterionResult(criterion, None, None, None, None, None, None, True)


def _fold_decided(criterion: CompiledCriterion, worth: CriterionWorth) -> CriterionResult:
    """Return the result of a criterion whose outcomes code decided, none of them open: of most criteria."""
    return CriterionResult(criterion, worth, 1.0, worth, worth, worth, worth, not worth.failed)


def _is_blocked(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "blocked"


NOTHING_GAINED = Bounds(0.0, 0.0)


def _find_bounds(outcome: Outcome) -> Bounds:
    if not isinstance(outcome, Scored):
        return NOTHING_GAINED
    if isinstance(outcome, PartlyOpenScore) and outcome.bounds is not None:
        return outcome.bounds
    return Bounds(outcome.decision, outcome.decision)


def _fold_ends(
    criterion: CompiledCriterion, spans: Sequence[Bounds], *, failed: bool, undecided: bool
) -> tuple[CriterionWorth, CriterionWorth]:
    return (
        _fold_worth(criterion, [span.low for span in spans], failed=failed or undecided),
        _fold_worth(criterion, [span.high for span in spans], failed=failed),
    )


def _fold_measured(criterion: CompiledCriterion, applying: Iterable[Outcome], *, failed: bool) -> CriterionWorth:
    values = [
        outcome.decision if isinstance(outcome, Scored) else 0.0
        for outcome in applying
        if isinstance(outcome, Scored) or _is_blocked(outcome)
    ]
    return _fold_worth(criterion, values, failed=failed)


def _fold_worth(criterion: CompiledCriterion, values: Sequence[float], *, failed: bool) -> CriterionWorth:
    return CriterionWorth(min(values) if criterion.takes_minimum else fsum(values) / len(values), failed)
