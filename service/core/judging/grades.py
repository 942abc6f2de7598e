"""What a judge's words are worth: its own value by the menu, and a graded one that uses all that it says.

One definition for what models answer now and for what is recorded of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Literal, NamedTuple

CANNOT_TELL = "cannot_tell"
"""The label on every menu that leaves the question open: it is worth nothing, neither little nor much."""

ClaimRule = Literal["none", "worst", "mean"]


class Worth(NamedTuple):
    """Two numbers in [0, 1]."""

    value: float
    """By the menu: what decides where no fit does."""
    graded: float
    """By all that was said: what fits take."""


def grade_claims(rule: ClaimRule, values: Sequence[float], likely: Sequence[float] | None = None) -> Worth:
    """What the claims about a text are worth together, each with its value in [0, 1]; one at least.

    `worst`: the value is that of the worst claim. The graded one falls with the number of bad claims and with how bad each
    is: one that is wholly bad leaves a half, a second one a third. What else is right changes nothing, for a text is not
    less wrong for being longer. `mean`: both are the mean. `likely`: the values over the labels' probabilities, in the same
    order, where they are known; they count for the graded value alone.

    >>> grade_claims("worst", [1.0, 1.0]), grade_claims("worst", [1.0, 0.0, 0.5])
    (Worth(value=1.0, graded=1.0), Worth(value=0.0, graded=0.4))
    >>> grade_claims("mean", [1.0, 0.0]).graded
    0.5
    """
    shades = values if likely is None else likely
    if rule == "worst":
        return Worth(min(values), 1 / (1 + fsum([1 - shade for shade in shades])))
    return Worth(_mean(values), _mean(shades))


def _mean(values: Sequence[float]) -> float:
    return min(1.0, fsum(values) / len(values))
