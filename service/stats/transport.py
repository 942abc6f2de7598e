"""Whether labels carry over: whether what they say of a judge is so elsewhere too.

An audit, not a proof: it finds a difference of means, with the variance of groups drawn whole (Liang and Zeger 1986,
Biometrika 73:13-22) and Welch's degrees of freedom at their least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum, sqrt

from service.stats.intervals import CONFIDENCE, wilson

NOISE = 1e-12
"""Of arithmetic, in a mean."""


@dataclass(frozen=True, slots=True)
class MeanShift:
    """By how much a mean is higher in the second sample, with its interval, and how likely so much is by chance alone."""

    value: float
    low: float
    high: float
    p_value: float


def compare_means(
    one: Sequence[float],
    other: Sequence[float],
    groups: tuple[Sequence[str | None], Sequence[str | None]],
    *,
    confidence: float = CONFIDENCE,
) -> MeanShift | None:
    """The mean of `other` minus that of `one`; None where a sample has fewer than two groups, or nothing differs.

    Where neither varies and the means are apart, the interval reaches as far as Wilson's for none of so many groups, and the
    chance is that of so clean a cut. A group None is an item of its own. Groups that are in both samples make the interval too
    wide rather than too narrow.
    """
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    parts = [_sum_deviations(values, names) for values, names in zip((one, other), groups, strict=True)]
    if min(len(part) for part in parts) < 2:
        return None
    variance = fsum(len(part) / (len(part) - 1) * fsum([each**2 for each in part]) for part in parts)
    shift = fsum(other) / len(other) - fsum(one) / len(one)
    if not variance > NOISE**2:
        return _compare_constants(shift, *map(len, parts), confidence=confidence)
    freedom, error = min(len(part) for part in parts) - 1, sqrt(variance)
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    p_value = 2 * float(stdtr(freedom, -abs(shift) / error))
    return MeanShift(shift, shift - half, shift + half, min(1.0, p_value))


def _compare_constants(shift: float, one: int, other: int, *, confidence: float) -> MeanShift | None:
    if abs(shift) <= NOISE:
        return None
    reach = wilson(0, min(one, other), confidence=confidence)[1]
    return MeanShift(shift, shift - reach, shift + reach, min(1.0, 2 / comb(one + other, one)))


def _sum_deviations(values: Sequence[float], groups: Sequence[str | None]) -> list[float]:
    """By how much each group moves the mean."""
    mean = fsum(values) / len(values) if values else 0.0
    found: dict[str | int, list[float]] = defaultdict(list)
    for at, (value, name) in enumerate(zip(values, groups, strict=True)):
        found[at if name is None else name].append((value - mean) / len(values))
    return [fsum(part) for part in found.values()]
