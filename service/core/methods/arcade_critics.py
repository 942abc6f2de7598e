"""Arcade's critics: each compares one expected with one actual argument.

Source: ArcadeAI/arcade-mcp, `libs/arcade-evals/arcade_evals/critic.py`. A score here is a share in (-inf, 1], before it is
multiplied by the critic's weight. The case swallows what a critic raises: see `service.core.methods.arcade_number`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, cast

from pydantic import JsonValue

from service.core.critics.similarity import arcade_cosine
from service.core.methods.arcade_dates import read_moments
from service.core.weights import Weight, read_weight

CriticKind = Literal["binary", "numeric", "similarity", "datetime", "none"]


@dataclass(frozen=True, slots=True)
class CriticSpec:
    """A critic of one argument.

    `threshold` decides the match of numeric and similarity critics; `low` and `high` are the numeric range; `tolerance` and
    `max_difference` are the datetime critic's, in seconds. Raises ValueError for a negative weight or an empty range.
    """

    field: str
    kind: CriticKind
    weight: Weight = 1.0
    threshold: float = 0.8
    low: float = 0.0
    high: float = 1.0
    tolerance: float = 500.0
    max_difference: float = 7200.0
    today: date | None = None
    """The day from which a datetime critic fills in what a text leaves out."""

    def __post_init__(self) -> None:
        if read_weight(self.weight) < 0:
            raise ValueError(f"a weight is 0 or more, not {self.weight!r}")
        if self.kind == "numeric" and self.low >= self.high:
            raise ValueError(f"a numeric range goes upwards, not from {self.low!r} to {self.high!r}")


@dataclass(frozen=True, slots=True)
class CriticResult:
    """The result of a critic: whether the two match (None: it does not compare), and how well, before weighting."""

    match: bool | None
    share: float


Compare = Callable[[CriticSpec, JsonValue, JsonValue], CriticResult]


def compare(critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult:
    """Compare as Arcade's `evaluate` does.

    Raises what its critics raise, and UndefinedUpstreamError where its number depends on the day.
    """
    return _COMPARE[critic.kind](critic, expected, actual)


def _compare_nothing(_critic: CriticSpec, _expected: JsonValue, _actual: JsonValue) -> CriticResult:
    return CriticResult(None, 0.0)


def _compare_binary(_critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult:
    """Compare by equality after the constructor of the expected value's type has converted the actual one.

    bool("False") is True, as upstream.
    """
    match = expected == _cast(expected, actual)
    return CriticResult(match, float(match))


def _cast(expected: JsonValue, actual: JsonValue) -> JsonValue:
    """Cast the actual value. The text "None" counts as null here, but the comparison afterwards still sees the expected text."""
    if actual is None or actual == "None":
        return None
    if expected is None or expected == "None":
        return actual
    constructor = cast("Callable[[JsonValue], JsonValue]", type(expected))
    try:
        return constructor(actual)
    except (ValueError, TypeError):
        return actual


def _compare_numeric(critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult:
    """Return 1 minus the distance as a share of the range; below 0 where the distance is larger than the range."""
    width = critic.high - critic.low
    share = 1 - abs((_to_number(expected) - critic.low) / width - (_to_number(actual) - critic.low) / width)
    return CriticResult(share >= critic.threshold, share)


def _to_number(value: JsonValue) -> float:
    return float(cast("str | float", value))  # any other type raises, as upstream


def _compare_similarity(critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult:
    share = arcade_cosine(_to_text(expected), _to_text(actual))
    return CriticResult(share >= critic.threshold, min(share, 1.0))


def _to_text(value: JsonValue) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _compare_datetime(critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult:
    """Return 1 within the tolerance, 0 from the maximum difference on, and in between 1 minus the *whole* difference's share."""
    try:
        moments = read_moments(_require_text(expected), _require_text(actual), critic.today)
    except (ValueError, TypeError):
        return CriticResult(False, 0.0)
    seconds = _count_seconds_between(*moments)
    if seconds <= critic.tolerance:
        return CriticResult(True, 1.0)
    return CriticResult(False, 1 - seconds / critic.max_difference if seconds < critic.max_difference else 0.0)


def _require_text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a moment is a text, not {value!r}")
    return value


def _count_seconds_between(one: datetime, other: datetime) -> float:
    """Count the seconds between two moments: in UTC if both have a zone; if only one has, its zone is dropped."""
    if one.tzinfo is not None and other.tzinfo is not None:
        return abs((one.astimezone(UTC) - other.astimezone(UTC)).total_seconds())
    return abs((one.replace(tzinfo=None) - other.replace(tzinfo=None)).total_seconds())


_COMPARE: Mapping[CriticKind, Compare] = {
    "none": _compare_nothing,
    "binary": _compare_binary,
    "numeric": _compare_numeric,
    "similarity": _compare_similarity,
    "datetime": _compare_datetime,
}
