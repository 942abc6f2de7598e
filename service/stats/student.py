"""Quantiles of Student's t without scipy, which takes too long to import while a page waits for its intervals."""

from __future__ import annotations

from math import exp, lgamma, log, pi, tan
from statistics import NormalDist

MAX_TERMS = 500
"""The most terms of the continued fraction."""
MAX_NEWTON_STEPS = 60
NORMAL_FROM = 1e7
"""Degrees of freedom from which t equals the normal distribution to ten digits."""
TINY = 1e-300
EPSILON = 1e-15


def find_t_quantile(df: float, p: float) -> float:
    """Find the `p` quantile, `p` in (0, 1), of Student's t with `df` degrees of df, which need not be whole.

    Accurate to some nine digits. ValueError for arguments out of range.

    >>> round(find_t_quantile(10, 0.975), 6), round(find_t_quantile(1.5, 0.975), 6), find_t_quantile(3, 0.5)
    (2.228139, 6.016663, 0.0)
    """
    if not (df > 0 and 0 < p < 1):
        raise ValueError("expected degrees of freedom above 0, and a probability between 0 and 1")
    if p < 1 / 2:
        return -find_t_quantile(df, 1 - p)
    if p == 1 / 2:
        return 0.0
    if df >= NORMAL_FROM:
        return NormalDist().inv_cdf(p)
    return tan(pi * (p - 1 / 2)) if df == 1 else _search(df, p)


def _search(df: float, p: float) -> float:
    """Take Newton's steps within a bracket, bisecting where a step would leave it."""
    low, high = 0.0, NormalDist().inv_cdf(p) + 1
    while _compute_below(df, high) < p:
        low, high = high, 2 * high
    at = (low + high) / 2
    for _ in range(MAX_NEWTON_STEPS):
        error = _compute_below(df, at) - p
        low, high = (low, at) if error > 0 else (at, high)
        step = at - error / _compute_density(df, at)
        following = step if low < step < high else (low + high) / 2
        if abs(following - at) <= 1e-14 * abs(at):
            return following
        at = following
    return at


def _compute_density(df: float, t: float) -> float:
    scale = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    return exp(scale - (df + 1) / 2 * log(1 + t * t / df))


def _compute_below(df: float, t: float) -> float:
    """Return the probability of a value below `t`, which is not negative."""
    return 1 - _compute_beta(df / 2, 1 / 2, df / (df + t * t)) / 2


def _compute_beta(a: float, b: float, x: float) -> float:
    """Compute the regularized incomplete beta function.

    Press et al. 2007, "Numerical Recipes", 6.4: Lentz's continued fraction, on the side where it converges fast.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _continue_fraction(a, b, x) / a
    return 1 - front * _continue_fraction(b, a, 1 - x) / b


def _continue_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _keep_off_zero(1 - (a + b) * x / (a + 1))
    whole = d
    for m in range(1, MAX_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _keep_off_zero(1 + term * d)
            c = _keep_off_zero(1 + term / c)
            whole *= c * d
        if abs(c * d - 1) < EPSILON:
            break
    return whole


def _keep_off_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
