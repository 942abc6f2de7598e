"""Weights: how much a criterion or argument counts, as a number or one of seven names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

WeightName = Literal["minimal", "very_low", "low", "medium", "high", "very_high", "critical"]


MAX_WEIGHT = 1e9
"""The largest weight: sums of weights stay finite."""

WeightNumber = Annotated[float, Field(ge=0, le=MAX_WEIGHT, allow_inf_nan=False)]

Weight = Annotated[
    Annotated[WeightNumber, Tag("number")] | Annotated[WeightName, Tag("name")],
    Discriminator(lambda weight: "name" if isinstance(weight, str) else "number"),
]
"""A number from 0 to MAX_WEIGHT, or a name."""

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"minimal": 1.0, "very_low": 2.0, "low": 3.0, "medium": 4.0, "high": 5.0, "very_high": 6.0, "critical": 7.0}
)
"""The weight of each name: equal steps from 1 to 7, as in Arcade's fuzzy weights."""


def read_weight(weight: Weight) -> float:
    """Return the weight as a number.

    >>> read_weight("high"), read_weight(0.5)
    (5.0, 0.5)
    """
    return WEIGHTS[weight] if isinstance(weight, str) else float(weight)


def compute_shares(weights: Mapping[str, Weight]) -> dict[str, float]:
    """Return the weights as numbers, by key: divided by their sum if any is a name, unchanged if all are numbers.

    A number beside a name keeps its value: 0.5 beside `critical` is 0.5 of 7.5. Source: Arcade evals (`weights.py`).

    >>> compute_shares({"owner": "high", "state": "low"})
    {'owner': 0.625, 'state': 0.375}
    >>> compute_shares({"owner": 0.7, "state": 0})
    {'owner': 0.7, 'state': 0.0}
    """
    numbers = {key: read_weight(weight) for key, weight in weights.items()}
    if not any(isinstance(weight, str) for weight in weights.values()):
        return numbers
    total = sum(numbers.values())
    return {key: number / total for key, number in numbers.items()}
