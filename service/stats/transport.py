"""Whether labels carry over: whether what they show about a judge also holds for another sample.

This is an audit, not a proof. It tests for a difference of means, with cluster-robust variances (Liang and Zeger 1986,
Biometrika 73:13-22) and the lower bound of Welch's degrees of freedom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum, sqrt

from service.stats.intervals import CONFIDENCE, wilson
from service.stats.student import find_t_quantile

TOLERANCE = 1e-12
"""Rounding error in a mean."""


@dataclass(frozen=True, slots=True)
class MeanShift:
    """How much higher the mean of the second sample is, with its interval and the p-value of no difference."""

    value: float
    low: float
    high: float
    p_value: float


def compare_means(
    one: Sequence[float],
    other: Sequence[float],
    groups: tuple[Sequence[str | None], Sequence[str | None]],
) -> MeanShift | None:
    """Compare the mean of `other` with that of `one`; None where a sample has fewer than two groups, or nothing differs.

    Where neither sample varies but the means differ, the half-width is the upper end of Wilson's interval for 0 of the
    smaller number of groups, and the p-value is the chance of so clean a split. An item whose group is None is a group of its
    own. Groups that appear in both samples make the interval too wide, never too narrow.
    """
    from scipy.special import stdtr  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    parts = [_sum_deviations(values, names) for values, names in zip((one, other), groups, strict=True)]
    if min(len(part) for part in parts) < 2:
        return None
    variance = fsum(len(part) / (len(part) - 1) * fsum([each**2 for each in part]) for part in parts)
    shift = fsum(other) / len(other) - fsum(one) / len(one)
    if not variance > TOLERANCE**2:
        if abs(shift) <= TOLERANCE:
            return None
        reach = wilson(0, min(map(len, parts)))[1]
        p_value = 2 / comb(sum(map(len, parts)), len(parts[0]))
        return MeanShift(shift, shift - reach, shift + reach, min(1.0, p_value))
    df, error = min(len(part) for part in parts) - 1, sqrt(variance)
    half = find_t_quantile(df, (1 + CONFIDENCE) / 2) * error
    p_value = 2 * float(stdtr(df, -abs(shift) / error))
    return MeanShift(shift, shift - half, shift + half, min(1.0, p_value))


def _sum_deviations(values: Sequence[float], groups: Sequence[str | None]) -> list[float]:
    """Return how much each group moves the mean."""
    mean = fsum(values) / len(values) if values else 0.0
    found: dict[str | int, list[float]] = defaultdict(list)
    for at, (value, name) in enumerate(zip(values, groups, strict=True)):
        found[at if name is None else name].append((value - mean) / len(values))
    return [fsum(part) for part in found.values()]
