"""From where on verdicts agree with labels in at least a stated share, by fixed-sequence testing.

Levels of sureness are tested from the surest inwards, each at the full level of error, until one fails: no level behind a
failure is looked at, so the chance that any accepted one is untrue stays below that level (Maurer, Hothorn and Lehmacher
1995, in "Biometrie in der chemisch-pharmazeutischen Industrie" 6; for selective prediction Angelopoulos et al. 2021, "Learn
then test", arXiv:2110.01052). Bounds are exact ones of the binomial (Clopper and Pearson 1934, Biometrika 26:404-413), of as
many labels as those of like groups are worth.
"""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.stats.tallies import Floats

FIRST_SHARE = 1 / 10
"""Of all verdicts, how many are tested first: fewer would be refused by one unlucky label."""


class VerdictRows(NamedTuple):
    """Verdicts beside labels: arrays of one length."""

    sureness: Floats
    """How sure the judge is of each."""
    agrees: NDArray[np.bool_]
    """Whether the label says the same."""
    passes: NDArray[np.bool_]
    """Which of the two the verdict is."""
    groups: NDArray[np.int64]
    """A number for the group of each, from 0."""

    def select(self, places: NDArray[np.int64]) -> VerdictRows:
        """Those at these places, in their order."""
        return VerdictRows(self.sureness[places], self.agrees[places], self.passes[places], self.groups[places])


def find_edge(rows: VerdictRows, *, share: float, error: float) -> float | None:
    """The least sureness from which on verdicts agree in at least `share` of cases, with confidence 1 - `error`; None: none does.

    That is so of passes and failures together; of these labels it is so of each by themselves too. `share` and `error` in (0, 1).
    """
    size = len(rows.sureness)
    if not size:
        return None
    likeness = estimate_likeness(rows.agrees, rows.groups)
    rows = rows.select(np.argsort(-rows.sureness, kind="stable"))
    n, agreeing = np.arange(1, size + 1), np.cumsum(rows.agrees)
    worth = 1 + (np.cumsum(2 * _count_before(rows.groups) + 1) / n - 1) * likeness
    held = bound_share(agreeing / worth, n / worth, error) >= share
    for side in (rows.passes, ~rows.passes):
        held &= np.cumsum(rows.agrees & side) >= share * np.cumsum(side)
    ends = np.append(rows.sureness[1:] != rows.sureness[:-1], True)
    tested = np.flatnonzero(ends & (n >= max(count_fewest(share, error), FIRST_SHARE * size)))
    accepted = tested[np.logical_and.accumulate(held[tested])]
    return float(rows.sureness[accepted[-1]]) if len(accepted) else None


def _count_before(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each place, how many of its group stand before it."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    before = np.empty(len(groups), dtype=np.int64)
    before[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return before


def count_fewest(share: float, error: float) -> int:
    """How many labels that all agree show such a share.

    >>> count_fewest(0.9, 0.05)
    29
    """
    return ceil(log(error) / log(share))


def bound_share(agreeing: Floats, size: Floats, error: float) -> Floats:
    """The exact lower bounds of shares in [0, 1]; counts may be fractions.

    >>> bound_share(np.array([29.0, 95.0, 0.0]), np.array([29.0, 100.0, 9.0]), 0.05).round(4).tolist()
    [0.9019, 0.8977, 0.0]
    """
    from scipy.special import betaincinv  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    known = agreeing > 0
    bounds = betaincinv(np.where(known, agreeing, 1.0), size - agreeing + 1, error)  # pyright: ignore[reportUnknownVariableType]
    return np.where(known, np.asarray(bounds, dtype=np.float64), 0.0)


def estimate_likeness(agrees: NDArray[np.bool_], groups: NDArray[np.int64]) -> float:
    """How alike verdicts of a group are, in [0, 1]: the intraclass correlation, one standard error above its estimate.

    0 where no group repeats. 1, so that a group counts as one item, where nothing is known of it: no item or every item agrees.
    By analysis of variance, with Fisher's standard error (Donner 1986, International Statistical Review 54:67-82).
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
