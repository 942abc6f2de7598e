"""The confidence from which verdicts agree with labels at a stated rate or better, by fixed-sequence testing.

Confidence levels are tested from the highest downwards, each at the full error level, until one fails. No level after a
failure is looked at, so the chance that any accepted level is wrong stays below the error level (Maurer, Hothorn and
Lehmacher 1995, in "Biometrie in der chemisch-pharmazeutischen Industrie" 6; for selective prediction Angelopoulos et al.
2021, "Learn then test", arXiv:2110.01052). Bounds are exact binomial ones (Clopper and Pearson 1934, Biometrika 26:404-413),
on the effective sample size where labels within a group are alike.
"""

from __future__ import annotations

from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from service.stats.tallies import Floats

FIRST_TEST_SHARE = 1 / 10
"""The share of verdicts in the first test; with fewer, one unlucky label would end the sequence."""
MAX_VERDICTS = 10_000
Bools = NDArray[np.bool_]


def find_certainty_threshold(
    certainty: Floats, agrees: Bools, passes: Bools, groups: NDArray[np.int64], *, share: float, error: float
) -> float | None:
    """Find the lowest certainty from which verdicts agree in at least `share` of cases, with confidence 1 - `error`.

    For each verdict: how certain the judge is, whether the label agrees, whether it passes, and its group, numbered from 0.
    None if there is none. The guarantee covers passes and failures together; among these very labels each of the two also
    agrees in `share` of its cases. `share` and `error` in (0, 1).
    """
    size = len(certainty)
    if not size:
        return None
    icc = estimate_icc(agrees, groups)
    order = np.argsort(-certainty, kind="stable")
    certainty, agrees, passes, groups = certainty[order], agrees[order], passes[order], groups[order]
    n, agreeing = np.arange(1, size + 1), np.cumsum(agrees)
    design_effect = 1 + (np.cumsum(2 * _count_before(groups) + 1) / n - 1) * icc
    meets_share = compute_lower_bounds(agreeing / design_effect, n / design_effect, error) >= share
    for side in (passes, ~passes):
        meets_share &= np.cumsum(agrees & side) >= share * np.cumsum(side)
    ends = np.append(certainty[1:] != certainty[:-1], True)
    tested = np.flatnonzero(ends & (n >= max(count_min_labels(share, error), FIRST_TEST_SHARE * size)))
    accepted = tested[np.logical_and.accumulate(meets_share[tested])]
    return float(certainty[accepted[-1]]) if len(accepted) else None


def _count_before(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each place, count the members of its group that stand before it."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    before = np.empty(len(groups), dtype=np.int64)
    before[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return before


def count_min_labels(share: float, error: float) -> int:
    """Return how many labels, all in agreement, it takes to show such a share.

    >>> count_min_labels(0.9, 0.05)
    29
    """
    return ceil(log(error) / log(share))


def count_verdicts(rate: float, share: float, error: float) -> int | None:
    """Count the verdicts, of which `rate` agree, that it takes to show such a share; None if `MAX_VERDICTS` do not.

    >>> count_verdicts(1.0, 0.9, 0.05), count_verdicts(0.95, 0.9, 0.05), count_verdicts(0.9, 0.9, 0.05)
    (29, 107, None)
    """
    sizes = np.arange(1.0, MAX_VERDICTS + 1)
    enough = compute_lower_bounds(rate * sizes, sizes, error) >= share
    return int(np.argmax(enough)) + 1 if enough.any() else None


def compute_lower_bounds(agreeing: Floats, size: Floats, error: float) -> Floats:
    """Compute the exact lower bounds of shares in [0, 1]; counts may be fractional.

    >>> compute_lower_bounds(np.array([29.0, 95.0, 0.0]), np.array([29.0, 100.0, 9.0]), 0.05).round(4).tolist()
    [0.9019, 0.8977, 0.0]
    """
    from scipy.special import betaincinv  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    known = agreeing > 0
    bounds = betaincinv(np.where(known, agreeing, 1.0), size - agreeing + 1, error)  # pyright: ignore[reportUnknownVariableType]
    return np.where(known, np.asarray(bounds, dtype=np.float64), 0.0)


def estimate_icc(agrees: Bools, groups: NDArray[np.int64]) -> float:
    """Estimate the intraclass correlation of verdicts within a group, in [0, 1], one standard error above the point estimate.

    0 where no group repeats. 1, so that a group counts as one item, where nothing can be estimated: no item or every item
    agrees. By analysis of variance, with Fisher's standard error (Donner 1986, International Statistical Review 54:67-82).
    """
    sizes = np.bincount(groups)
    right = np.bincount(groups, weights=agrees)[sizes > 0]
    sizes = sizes[sizes > 0].astype(np.float64)
    n, count, mean = len(groups), len(sizes), float(np.mean(agrees))
    if n == count:
        return 0.0
    if count < 2 or mean in (0, 1):
        return 1.0
    between = float((sizes * (right / sizes - mean) ** 2).sum()) / (count - 1)
    within = float((right * (1 - right / sizes)).sum()) / (n - count)
    size = (n - float((sizes**2).sum()) / n) / (count - 1)
    rest = between + (size - 1) * within
    rho = max(0.0, (between - within) / rest) if rest > 0 else 1.0
    spread = 2 * (1 - rho) ** 2 * (1 + (size - 1) * rho) ** 2 / (size * max(size - 1, 1 / size) * max(count - 1, 1))
    return min(1.0, rho + sqrt(spread))
