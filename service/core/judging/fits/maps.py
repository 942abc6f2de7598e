"""Maps from a judge's raw value in [0, 1] to a probability in [0, 1]; each is monotone."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from itertools import pairwise
from math import exp, log
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from service.core.models.kinds import FrozenModel, Some

Share = Annotated[float, Field(ge=0, le=1)]

EDGE = 0.001
"""How far raw values are kept from 0 and 1 in log odds: a judge that says 1.0 is not infinitely sure."""
NOISE = 1e-9


class CalibratedValue(NamedTuple):
    """A probability in [0, 1], with an interval where the map gives one."""

    value: float
    interval: tuple[float, float] | None = None


class Calibrator(FrozenModel):
    """A map from raw values in [0, 1] to probabilities in [0, 1]."""

    @abstractmethod
    def apply(self, raw: float) -> CalibratedValue:
        """Return the probability that a human would pass an item with this raw value in [0, 1]."""


class Identity(Calibrator):
    """The raw value, unchanged."""

    kind: Literal["identity"] = "identity"

    def apply(self, raw: float) -> CalibratedValue:
        """Return the raw value.

        >>> Identity().apply(0.25).value
        0.25
        """
        return CalibratedValue(raw)


class Platt(Calibrator):
    """A logistic curve (Platt 1999, "Probabilistic outputs for support vector machines")."""

    kind: Literal["platt"] = "platt"
    slope: float = Field(ge=0)
    offset: float

    def apply(self, raw: float) -> CalibratedValue:
        """Return the height of the curve at `raw`.

        >>> Platt(slope=4.0, offset=-2.0).apply(0.5).value
        0.5
        """
        return CalibratedValue(sigmoid(self.slope * raw + self.offset))


class Temperature(Calibrator):
    """Log odds divided by one number (Guo et al. 2017, "On calibration of modern neural networks"); 0.5 stays 0.5."""

    kind: Literal["temperature"] = "temperature"
    temperature: float = Field(gt=0)

    def apply(self, raw: float) -> CalibratedValue:
        """Return the probability of the scaled log odds.

        >>> round(Temperature(temperature=2.0).apply(0.9).value, 6)
        0.75
        """
        return CalibratedValue(sigmoid(log_odds(raw) / self.temperature))


class Isotonic(Calibrator):
    """Straight lines between knots, flat beyond them (Zadrozny and Elkan 2002, "Transforming classifier scores ...")."""

    kind: Literal["isotonic"] = "isotonic"
    raw: Some[Share]
    """The raw values of the knots, strictly ascending."""
    value: Some[Share]
    """The probability at each knot, never descending."""

    @model_validator(mode="after")
    def _monotone(self) -> Isotonic:
        _require_ascending(self.raw, "raw")
        _require_no_descent(self.value, "value", len(self.raw))
        return self

    def apply(self, raw: float) -> CalibratedValue:
        """Return the value on the line at `raw`.

        >>> Isotonic(raw=(0.2, 0.6), value=(0.0, 1.0)).apply(0.5).value
        0.75
        """
        at = bisect_left(self.raw, raw)
        if at == len(self.raw):
            return CalibratedValue(self.value[-1])
        if at == 0 or self.raw[at] == raw:
            return CalibratedValue(self.value[at])
        x, y, high = self.raw[at - 1], self.value[at - 1], self.value[at]
        return CalibratedValue(min(high, y + (high - y) * (raw - x) / (self.raw[at] - x)))


class VennAbers(Calibrator):
    """Two probabilities, as if the item failed and as if it passed (Vovk and Petej 2014, arXiv:1211.0025).

    The value is high / (1 - low + high), which is minimax under log loss; the two probabilities are its interval.
    """

    kind: Literal["venn_abers"] = "venn_abers"
    raw: Some[Share]
    """The k raw values of the labelled items, strictly ascending."""
    low: Some[Share]
    """2k + 1 probabilities, never descending: below the first raw value, at it, between it and the next, and so on."""
    high: Some[Share]
    """Likewise, and nowhere below `low`."""

    @model_validator(mode="after")
    def _monotone(self) -> VennAbers:
        _require_ascending(self.raw, "raw")
        for name in ("low", "high"):
            _require_no_descent(getattr(self, name), name, 2 * len(self.raw) + 1)
        if any(low > high + NOISE for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low lies above high")
        return self

    def apply(self, raw: float) -> CalibratedValue:
        """Return the value and its interval at `raw`.

        >>> found = VennAbers(raw=(0.5,), low=(0.0, 0.25, 0.5), high=(0.5, 0.75, 1.0)).apply(0.5)
        >>> found.value, found.interval
        (0.5, (0.25, 0.75))
        """
        at = bisect_left(self.raw, raw)
        place = 2 * at + (at < len(self.raw) and self.raw[at] == raw)
        low, high = self.low[place], self.high[place]
        return CalibratedValue(high / (1 - low + high), (low, high))


def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)), without overflow."""
    if x >= 0:
        return 1 / (1 + exp(-x))
    grown = exp(x)
    return grown / (1 + grown)


def log_odds(share: float) -> float:
    """Return log(share / (1 - share)), with the share kept `EDGE` away from 0 and 1."""
    kept = min(1 - EDGE, max(EDGE, share))
    return log(kept / (1 - kept))


def _require_ascending(values: tuple[float, ...], name: str) -> None:
    if any(a >= b for a, b in pairwise(values)):
        raise ValueError(f"{name} must ascend strictly")


def _require_no_descent(values: tuple[float, ...], name: str, count: int) -> None:
    if len(values) != count:
        raise ValueError(f"expected {count} numbers in {name}, not {len(values)}")
    if any(a > b for a, b in pairwise(values)):
        raise ValueError(f"{name} must not descend")
