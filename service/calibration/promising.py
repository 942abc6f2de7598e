"""What of a judge's verdicts is accepted, so that a stated share of them agrees with humans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from service.calibration.figures import Measure, Resampling
from service.core.judging.fits import Guarantee
from service.stats.corrected import code_groups
from service.stats.intervals import bootstrap
from service.stats.rates import RatePart
from service.stats.selective import VerdictRows, find_certainty_threshold

ERROR = 0.05
"""How likely it may be that a promise is not kept."""
TESTED_PART = 1 / 3
"""Of the error, at how much levels are tested. The rest is for what was learned from these very labels: which values are one
level, and in which order passes and failures take turns. On D2T-Eval a half would break promises of judges with many values in
9 % of 500 splits."""
LEVELS = (0.8, 0.85, 0.9, 0.95)
"""The shares that every report tells the coverage of."""


class AcceptedItem(NamedTuple):
    """An item, whether its verdict is accepted, and whether that is the label's."""

    group: str
    accepted: bool
    agrees: bool


def measure_shares(items: Sequence[AcceptedItem], resampling: Resampling) -> tuple[Measure, Measure]:
    """The share of items that is accepted, and the share of these that agrees, with intervals by groups where any are drawn."""
    accepted = [item for item in items if item.accepted]
    whole = [RatePart(item.group, float(item.accepted)) for item in items]
    return measure_share(whole, resampling), measure_share(
        [RatePart(item.group, float(item.agrees)) for item in accepted], resampling
    )


def measure_share(parts: Sequence[RatePart], resampling: Resampling) -> Measure:
    """The share of hits, with its interval by groups where any is drawn; undefined for no parts."""
    if not parts:
        return Measure(None)
    rate = sum(part.hits for part in parts) / len(parts)
    return Measure(rate, *bootstrap(parts)) if resampling.draws else Measure(rate)


class VerdictItem(NamedTuple):
    """A labelled item: the judge's raw value, what a map makes of it, the verdict by that, and the label's."""

    raw: float
    value: float
    passed: bool
    label: bool
    group: str


def find_guarantees(
    items: Sequence[VerdictItem], shares: Sequence[float], *, stages: int = 1
) -> dict[float, Guarantee]:
    """For each share, the verdicts that agree with labels in at least so many cases: as many as can be shown.

    Passes and failures are one sequence, from the surest by the map inwards, tested at `TESTED_PART` of the error. `stages`: of
    the judges of a cascade each gets as large a part of the error, so that all their promises hold together (Bonferroni's
    inequality: Dunn 1961, "Multiple comparisons among means", JASA 56:52-64).
    """
    rows = _build_rows(items)
    return {share: _find_guarantee(items, rows, share, confidence=1 - ERROR / stages) for share in shares}


def _find_guarantee(items: Sequence[VerdictItem], rows: VerdictRows, share: float, *, confidence: float) -> Guarantee:
    edge = find_certainty_threshold(rows, share=share, error=(1 - confidence) * TESTED_PART)
    accepted = (
        [] if edge is None else [one for one, sure in zip(items, rows.certainty.tolist(), strict=True) if sure >= edge]
    )
    return Guarantee(
        share=share,
        confidence=round(confidence, 6),
        passes_from=min([one.raw for one in accepted if one.passed], default=None),
        fails_to=max([one.raw for one in accepted if not one.passed], default=None),
    )


def _build_rows(items: Sequence[VerdictItem]) -> VerdictRows:
    values, passes = np.array([one.value for one in items]), np.array([one.passed for one in items], dtype=np.bool_)
    labels, groups = np.array([one.label for one in items], dtype=np.bool_), code_groups([one.group for one in items])
    return VerdictRows(np.where(passes, values, 1 - values), labels == passes, passes, groups)
