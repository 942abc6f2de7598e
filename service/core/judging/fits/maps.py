"""Maps from a judge's raw value in [0, 1] to a probability in [0, 1]; each is monotone."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from itertools import pairwise
from math import exp
from typing import Annotated, Literal

from pydantic import Field, model_validator

from service.core.models.kinds import FrozenModel, Some

Share = Annotated[float, Field(ge=0, le=1)]

NOISE = 1e-9


class Calibrator(FrozenModel):
    """A map from raw values in [0, 1] to probabilities in [0, 1]."""

    @abstractmethod
    def apply(self, raw: float) -> float:
        """Return the probability that a human would pass an item with this raw value in [0, 1]."""


class Identity(Calibrator):
    """The raw value, unchanged."""

    kind: Literal["identity"] = "identity"

    def apply(self, raw: float) -> float:
        """Return the raw value.

        >>> Identity().apply(0.25)
        0.25
        """
        return raw


class Platt(Calibrator):
    """A logistic curve (Platt 1999, "Probabilistic outputs for support vector machines")."""

    kind: Literal["platt"] = "platt"
    slope: float = Field(ge=0)
    offset: float

    def apply(self, raw: float) -> float:
        """Return the height of the curve at `raw`.

        >>> Platt(slope=4.0, offset=-2.0).apply(0.5)
        0.5
        """
        height = self.slope * raw + self.offset
        small = exp(-abs(height))  # so that nothing overflows
        return (1 if height >= 0 else small) / (1 + small)


class Isotonic(Calibrator):
    """Straight lines between knots, flat beyond them (Zadrozny and Elkan 2002, "Transforming classifier scores ...")."""

    kind: Literal["isotonic"] = "isotonic"
    raw: Some[Share]
    """The raw values of the knots, strictly ascending."""
    value: Some[Share]
    """The probability at each knot, never descending."""

    @model_validator(mode="after")
    def _monotone(self) -> Isotonic:
        if any(a >= b for a, b in pairwise(self.raw)):
            raise ValueError("raw must ascend strictly")
        if len(self.value) != len(self.raw):
            raise ValueError(f"expected {len(self.raw)} numbers in value, not {len(self.value)}")
        if any(a > b for a, b in pairwise(self.value)):
            raise ValueError("value must not descend")
        return self

    def apply(self, raw: float) -> float:
        """Return the value on the line at `raw`.

        >>> Isotonic(raw=(0.2, 0.6), value=(0.0, 1.0)).apply(0.5)
        0.75
        """
        at = bisect_left(self.raw, raw)
        if at == len(self.raw):
            return self.value[-1]
        if at == 0 or self.raw[at] == raw:
            return self.value[at]
        x, y, high = self.raw[at - 1], self.value[at - 1], self.value[at]
        return min(high, y + (high - y) * (raw - x) / (self.raw[at] - x))
