"""The labels that a judge may give, and what they are worth: a value by the menu, and one that uses everything it says.

Live replies and recorded judgements of other systems share these definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import AfterValidator, BeforeValidator, Field

from service.core.judging.fits.maps import Share
from service.core.models.kinds import FrozenModel

CANNOT_TELL = "cannot_tell"
"""The label on every menu that leaves the question open. It has no value, low or high."""

ClaimRule = Literal["none", "worst", "mean"]


class Label(FrozenModel):
    """One label that a judge may give."""

    value: Share
    """The value of the label, in [0, 1]."""
    means: str = ""
    """When to give this label: the anchor of the scale."""


def _read_scale(given: object) -> object:
    """Turn numeric labels into strings (YAML reads labels like 0 to 5 as numbers), and a bare number into a label's value."""
    if not isinstance(given, dict):
        return given
    labels = cast("dict[object, object]", given)
    return {
        str(key) if type(key) is int else key: {"value": one} if type(one) in (int, float) else one
        for key, one in labels.items()
    }


Scale = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Label],
    BeforeValidator(_read_scale),
    Field(min_length=2, max_length=20),
    AfterValidator(lambda labels: dict(sorted(labels.items(), key=lambda item: (-item[1].value, item[0])))),
]
"""The labels, best first, as a model sees them; their order in the file means nothing."""


class Worth(NamedTuple):
    """The two values of a judgement, both in [0, 1]."""

    value: float
    """The value by the menu, which decides where no fit does."""
    graded: float
    """The value by everything the judge said, which fits take as input."""


DOUBT_POWER = 1.5
"""The exponent on how bad a claim is: a doubt of the judge tells less than a claim it knows to be wrong.

On D2T-Eval, all six recorded judges rank texts better with any exponent between 1.2 and 6 than without their doubts, and
about equally well within that range. With this one, a text with one claim that is half bad lies below 0.75, as the menu
has it.
"""


def shade_value(rule: ClaimRule, value: float) -> float:
    """Return the worth in [0, 1] of a claim with this value among others; under `worst`, doubts weigh less.

    >>> round(shade_value("worst", 0.5), 3), shade_value("mean", 0.5)
    (0.646, 0.5)
    """
    return 1 - (1 - value) ** DOUBT_POWER if rule == "worst" else value


def grade_claims(rule: ClaimRule, values: Sequence[float], likely: Sequence[float | None] = ()) -> Worth:
    """Return the joint worth of the claims about a text, from their values in [0, 1]; at least one claim.

    `worst`: the value is that of the worst claim. The graded value falls with the number of bad claims and how bad each is:
    one wholly bad claim leaves a half, two leave a third, and one that is half bad leaves about three quarters. Correct
    claims do not raise it: a longer text is no less wrong. `mean`: both values are means. `likely`: for the first claims,
    in order, the mean of `shade_value` over the labels' probabilities, None where these are unknown; it affects only the
    graded value.

    >>> grade_claims("worst", [1.0, 1.0]), grade_claims("worst", [1.0, 0.0, 0.0])
    (Worth(value=1.0, graded=1.0), Worth(value=0.0, graded=0.3333333333333333))
    >>> round(grade_claims("worst", [1.0, 0.5]).graded, 3), grade_claims("mean", [1.0, 0.0]).graded
    (0.739, 0.5)
    """
    known = [*likely, *[None] * (len(values) - len(likely))]
    shades = [shade_value(rule, value) if one is None else one for value, one in zip(values, known, strict=True)]
    if rule == "worst":
        return Worth(min(values), 1 / (1 + fsum([1 - shade for shade in shades])))
    return Worth(mean(values), mean(shades))


def mean(values: Sequence[float]) -> float:
    """Return the mean of values in [0, 1], never more than 1 by rounding."""
    return min(1.0, fsum(values) / len(values))
