"""Quantiles of Student's t without scipy, which takes too long to import while a page waits for its intervals.

With t = sqrt(df) * tan(a), the probability between 0 and t is the integral of cos(x) ** (df - 1) from 0 to a, but for a factor.
"""

from __future__ import annotations

from math import cos, exp, lgamma, log1p, pi, sin, sqrt, tan
from statistics import NormalDist

SIMPSON_PANELS = 400
MAX_NEWTON_STEPS = 100
NORMAL_FROM = 1e7
"""Degrees of freedom from which t equals the normal distribution to seven digits."""


def find_t_quantile(df: float, p: float) -> float:
    """Find the `p` quantile, `p` in (0, 1), of Student's t with `df` degrees of freedom, which need not be whole.

    Accurate to some seven digits. ValueError for fewer than one degree of freedom, and for `p` out of range.

    >>> round(find_t_quantile(10, 0.975), 6), round(find_t_quantile(1.5, 0.975), 6), find_t_quantile(3, 0.5)
    (2.228139, 6.016663, 0.0)
    """
    if not (df >= 1 and 0 < p < 1):
        raise ValueError("expected one degree of freedom or more, and a probability between 0 and 1")
    if p < 1 / 2:
        return -find_t_quantile(df, 1 - p)
    if df >= NORMAL_FROM:
        return NormalDist().inv_cdf(p)
    wanted = (p - 1 / 2) * sqrt(pi) * exp(lgamma(df / 2) - lgamma((df + 1) / 2))
    angle = 0.0  # the integral is concave, so Newton's steps from 0 never go too far
    for _ in range(MAX_NEWTON_STEPS):
        step = (wanted - _integrate(df, angle)) / cos(angle) ** (df - 1)
        angle = min(angle + step, pi / 2)
        if abs(step) <= 1e-12 * angle:
            break
    return sqrt(df) * tan(angle)


def _integrate(df: float, angle: float) -> float:
    """Integrate cos(x) ** (df - 1) from 0 to `angle` by Simpson's rule."""
    heights = [exp((df - 1) / 2 * log1p(-(sin(angle * at / SIMPSON_PANELS) ** 2))) for at in range(SIMPSON_PANELS + 1)]
    return angle / SIMPSON_PANELS / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))
