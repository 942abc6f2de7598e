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


DOUBT_POWER = 1.5
"""To which power it counts how bad a claim is: what a judge doubts tells less than what it knows to be wrong.

On D2T-Eval all of six recorded judges rank texts better with any power between 1.2 and 6 than without their doubts, and about
as well as each other. With this one, a text of which one claim is half bad lies below 0.75, as the menu has it.
"""


def shade_value(rule: ClaimRule, value: float) -> float:
    """What a claim of this value is worth among others, in [0, 1]; for `worst`, doubts weigh less.

    >>> round(shade_value("worst", 0.5), 3), shade_value("mean", 0.5)
    (0.646, 0.5)
    """
    return 1 - (1 - value) ** DOUBT_POWER if rule == "worst" else value


def grade_claims(rule: ClaimRule, values: Sequence[float], likely: Sequence[float | None] = ()) -> Worth:
    """What the claims about a text are worth together, each with its value in [0, 1]; one at least.

    `worst`: the value is that of the worst claim. The graded one falls with the number of bad claims and with how bad each
    is: one that is wholly bad leaves a half, a second one a third, and one that is half bad about three quarters. What else
    is right changes nothing, for a text is not
    less wrong for being longer. `mean`: both are the mean. `likely`: for the first claims, in the same order, what
    `shade_value` gives on average over the labels' probabilities, None where these are not known; it counts for the graded
    value alone.

    >>> grade_claims("worst", [1.0, 1.0]), grade_claims("worst", [1.0, 0.0, 0.0])
    (Worth(value=1.0, graded=1.0), Worth(value=0.0, graded=0.3333333333333333))
    >>> round(grade_claims("worst", [1.0, 0.5]).graded, 3), grade_claims("mean", [1.0, 0.0]).graded
    (0.739, 0.5)
    """
    known = [*likely, *[None] * (len(values) - len(likely))]
    shades = [shade_value(rule, value) if one is None else one for value, one in zip(values, known, strict=True)]
    if rule == "worst":
        return Worth(min(values), 1 / (1 + fsum([1 - shade for shade in shades])))
    return Worth(_mean(values), _mean(shades))


def _mean(values: Sequence[float]) -> float:
    return min(1.0, fsum(values) / len(values))
