"""Matchers for numbers. A boolean is not a number; a string is one only where a matcher casts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from typing import Annotated, Literal

from pydantic import Field, JsonValue, Strict, model_validator

from service.core.critics.base import MATCHED, Critic, Match, Number, ValueCritic, build_mismatch
from service.core.json.values import equals, format_value

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
_ROUNDING = 2.0**-49  # eight units in the last place: more than the error of the float arithmetic below
_MAX_FLOAT = 1e300

Measure = float | Fraction
Pair = Annotated[tuple[Number, Number], Strict(False)]


def read_number(value: JsonValue) -> Number | None:
    """Return the finite number in a value: the number itself, or the one that a string spells as JSON would; else None.

    >>> [read_number(value) for value in (3, "3", "3.0", "1e3", True, "0x10", "٣", " 3", "1_000", "1e999")]
    [3, 3, 3.0, 1000.0, None, None, None, None, None, None]
    """
    if isinstance(value, str):
        value = json.loads(value) if _JSON_NUMBER.fullmatch(value) else None
    return _read_finite(value)


def _read_finite(value: JsonValue) -> Number | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or isfinite(value) else None


def read_decimal(number: Number) -> Fraction:
    """Return the number as written: 0.1 is exactly one tenth, not the nearest binary fraction."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


class Range(Critic):
    """A number between two bounds, both included.

    >>> [Range(min=80, max=100).match(actual).value for actual in (80, 100.0, 79.9, "90", True)]
    [1.0, 1.0, 0.0, 0.0, 0.0]
    """

    kind: Literal["range"] = "range"
    min: Number | None = None
    """The smallest value allowed."""
    max: Number | None = None
    """The largest value allowed."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Range:
        if self.min is None and self.max is None:
            raise ValueError("a range needs min or max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is greater than max")
        return self

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Return 1 or 0."""
        number = _read_finite(actual)
        if number is None:
            return Match(0.0, False, lambda: f"expected a number {self._describe_bounds()}, got {format_value(actual)}")
        if (self.min is None or number >= self.min) and (self.max is None or number <= self.max):
            return MATCHED
        return Match(0.0, False, lambda: f"expected {self._describe_bounds()}, got {format_value(actual)}")

    def _describe_bounds(self) -> str:
        least = "" if self.min is None else f"at least {format_value(self.min)}"
        most = "" if self.max is None else f"at most {format_value(self.max)}"
        return f"{least} and {most}" if least and most else least or most


class Numeric(ValueCritic):
    """A number near the expected one.

    With `tolerance` or `rel_tolerance`, it passes within the larger of the two; beyond, the value is 0, or falls linearly from
    1 at the tolerance to 0 at `cutoff`. With `value_range` [lo, hi], the value is 1 - |expected - actual| / (hi - lo), at least
    0, and passes from `threshold` on. Distances are those of the numbers as written, so 5.05 is within 0.05 of 5.

    >>> [Numeric(value=5, tolerance=0.05).match(actual).value for actual in (5, 5.05, 5.06, "5", None)]
    [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> [Numeric(value=100, tolerance=10, cutoff=30).match(actual).value for actual in (110, 120, 130, 1000)]
    [1.0, 0.5, 0.0, 0.0]
    >>> [Numeric(value=50, value_range=[0, 100]).match(actual).value for actual in (50, 30, 1050)]
    [1.0, 0.8, 0.0]
    >>> [Numeric(value=5400, rel_tolerance=0.01, cast=True).match(actual).value for actual in (5454, 5455, "5400.0")]
    [1.0, 0.0, 1.0]
    """

    kind: Literal["numeric"] = "numeric"
    tolerance: Number = Field(default=0, ge=0)
    """The distance allowed."""
    rel_tolerance: Number = Field(default=0, ge=0)
    """The distance allowed, as a share of the expected number's size."""
    cutoff: Number | None = None
    """The distance at which the value reaches 0; greater than `tolerance`."""
    value_range: Pair | None = None
    """The smallest and the largest sensible number: distances count as a share of their difference."""
    threshold: float = Field(default=0.8, ge=0, le=1)
    """The value that passes; only with `value_range`."""
    cast: bool = False
    """Whether a string that spells a JSON number counts as that number."""

    @model_validator(mode="after")
    def _check_settings(self) -> Numeric:
        distances = {"tolerance", "rel_tolerance", "cutoff"} & self.model_fields_set
        if self.value_range is not None and distances:
            raise ValueError(f"value_range does not go with {', '.join(sorted(distances))}")
        if self.value_range is not None and self.value_range[0] >= self.value_range[1]:
            raise ValueError("value_range needs its lower bound below its upper bound")
        if self.value_range is None and "threshold" in self.model_fields_set:
            raise ValueError("threshold needs value_range")
        if self.cutoff is not None and self.cutoff <= self.tolerance:
            raise ValueError("cutoff must be greater than tolerance")
        if self.has_value and self._read_number(self.value) is None:
            raise ValueError(f"the value must be a number, not {format_value(self.value)}")
        return self

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """Return the value in [0, 1]. If the expected value is no number, only the identical value matches."""
        if equals(actual, expected):
            return MATCHED
        got, want = self._read_number(actual), self._read_number(expected)
        if got is None or want is None:
            return build_mismatch(actual, expected)
        value, passed = self._grade(got, want)
        if passed:
            return Match(value, True)
        return build_mismatch(actual, expected, value=value, why=f"off by {_format_distance(got, want)}")

    def _read_number(self, value: JsonValue) -> Number | None:
        return read_number(value) if self.cast else _read_finite(value)

    def _grade(self, got: Number, want: Number) -> tuple[float, bool]:
        """Grade in floats where these decide clearly, else in exact decimals."""
        scale = max(abs(x) for x in (got, want, self.tolerance, self.cutoff or 0, *(self.value_range or ())))
        if scale < _MAX_FLOAT:
            distance, allowed = abs(float(got) - float(want)), self._compute_allowed(want, float)
            if abs(distance - allowed) > scale * _ROUNDING:
                return _clamp(self._compute_value(distance, allowed, float)), distance < allowed
        distance, allowed = abs(read_decimal(got) - read_decimal(want)), self._compute_allowed(want, read_decimal)
        return _clamp(self._compute_value(distance, allowed, read_decimal)), distance <= allowed

    def _compute_allowed(self, want: Number, read: Callable[[Number], Measure]) -> Measure:
        if self.value_range is None:
            return max(read(self.tolerance), read(self.rel_tolerance) * abs(read(want)))
        low, high = read(self.value_range[0]), read(self.value_range[1])
        return (read(1) - read(self.threshold)) * (high - low)

    def _compute_value(self, distance: Measure, allowed: Measure, read: Callable[[Number], Measure]) -> Measure:
        if self.value_range is not None:
            low, high = read(self.value_range[0]), read(self.value_range[1])
            return read(1) - distance / (high - low)
        if distance <= allowed:
            return read(1)
        if self.cutoff is None or distance >= self.cutoff:
            return read(0)
        return (read(self.cutoff) - distance) / (read(self.cutoff) - allowed)


def _clamp(value: Measure) -> float:
    return float(min(1, max(0, value)))


def _format_distance(got: Number, want: Number) -> str:
    """Render the distance for people, as short as the numbers are written."""
    distance = abs(read_decimal(got) - read_decimal(want))
    if distance.denominator == 1:
        return format_value(distance.numerator)
    return format_value(float(distance)) if distance < _MAX_FLOAT else "more than 1e300"
