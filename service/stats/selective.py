"""From where on verdicts agree with labels in at least a stated share, by fixed-sequence testing.

Levels of a judge's value are tested from the surest inwards, each at the full level of error, until one fails: no level
behind a failure is looked at, so the chance that any accepted one is untrue stays below that level (Maurer, Hothorn and
Lehmacher 1995, in "Biometrie in der chemisch-pharmazeutischen Industrie" 6; for selective prediction Angelopoulos et al.
2021, "Learn then test", arXiv:2110.01052). Bounds are exact ones of the binomial (Clopper and Pearson 1934, Biometrika
26:404-413), of as many labels as those of like groups are worth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from math import ceil, fsum, log, sqrt
from typing import NamedTuple

FIRST_SHARE = 1 / 5
"""Of a side, how much is tested first: less would be refused by one unlucky label."""


class SideItem(NamedTuple):
    """An item on one side of the threshold: how sure the judge is, whether the label agrees, and its group."""

    sureness: float
    agrees: bool
    group: str


def find_edge(items: Sequence[SideItem], *, share: float, error: float) -> float | None:
    """The least sureness from which on items agree in at least `share` of cases, with confidence 1 - `error`; None: none does.

    `share` and `error` in (0, 1).
    """
    likeness = estimate_likeness(items)
    least = max(count_fewest(share, error), FIRST_SHARE * len(items))
    ranked = sorted(items, key=lambda item: -item.sureness)
    sizes: Counter[str] = Counter()
    edge, n, agreeing, squares = None, 0, 0, 0
    for sureness, level in groupby(ranked, key=lambda item: item.sureness):
        for item in level:
            squares += 2 * sizes[item.group] + 1
            sizes[item.group] += 1
            n, agreeing = n + 1, agreeing + item.agrees
        if n < least:
            continue
        worth = 1 + (squares / n - 1) * likeness
        if bound_share(agreeing / worth, n / worth, error) < share:
            return edge
        edge = sureness
    return edge


def count_fewest(share: float, error: float) -> int:
    """How many labels that all agree show such a share.

    >>> count_fewest(0.9, 0.05)
    29
    """
    return ceil(log(error) / log(share))


def bound_share(agreeing: float, size: float, error: float) -> float:
    """The exact lower bound of a share in [0, 1]; counts may be fractions.

    >>> round(bound_share(29, 29, 0.05), 4), round(bound_share(95, 100, 0.025), 4)
    (0.9019, 0.8872)
    """
    from scipy.special import betaincinv  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    return 0.0 if agreeing <= 0 else float(betaincinv(agreeing, size - agreeing + 1, error))


def estimate_likeness(items: Sequence[SideItem]) -> float:
    """How alike items of a group are, in [0, 1]: the intraclass correlation, one standard error above its estimate.

    0 where no group repeats. 1, so that a group counts as one item, where nothing is known of it: no item or every item agrees.
    By analysis of variance, with Fisher's standard error (Donner 1986, International Statistical Review 54:67-82).
    """
    groups: dict[str, list[bool]] = defaultdict(list)
    for item in items:
        groups[item.group].append(item.agrees)
    n, count = len(items), len(groups)
    if n == count:
        return 0.0
    mean = sum(item.agrees for item in items) / n
    if count < 2 or mean in (0, 1):
        return 1.0
    between = fsum(len(one) * (sum(one) / len(one) - mean) ** 2 for one in groups.values()) / (count - 1)
    within = fsum(sum(one) * (1 - sum(one) / len(one)) for one in groups.values()) / (n - count)
    size = (n - sum(len(one) ** 2 for one in groups.values()) / n) / (count - 1)
    rest = between + (size - 1) * within
    rho = max(0.0, (between - within) / rest) if rest > 0 else 1.0
    spread = 2 * (1 - rho) ** 2 * (1 + (size - 1) * rho) ** 2 / (size * max(size - 1, 1 / size) * max(count - 1, 1))
    return min(1.0, rho + sqrt(spread))
