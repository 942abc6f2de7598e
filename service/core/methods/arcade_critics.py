"""Arcade's critics: each compares one expected with one actual argument, by the settings of a matcher of ours.

Source: ArcadeAI/arcade-mcp, `libs/arcade-evals/arcade_evals/critic.py`. BinaryCritic is `exact`, NumericCritic `numeric`,
SimilarityCritic `similar` and DatetimeCritic `datetime`. A score here is a share in (-inf, 1], before it is weighted.

Arcade reads dates with dateutil, which accepts many ways of writing them, prefers the American order where both are possible,
and fills in what a text leaves out from today. The core has no clock: a rubric may name the day, and without one a text that
leaves something out cannot be read. Only UTC's zone names are known, as on a machine that is set to UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, tzinfo
from typing import cast

from dateutil import parser, tz
from pydantic import JsonValue

from service.core.critics import Critic, DateTime, Exact, Numeric, Similar, arcade_cosine
from service.core.models.kinds import find_kind
from service.errors import InputError

TOLERANCE_S, MAX_DIFFERENCE_S = 500.0, 7200.0
"""What DatetimeCritic allows in full, and from where on it gives nothing, unless it says otherwise."""
MAX_DATE_CHARS = 1_000
"""The longest text that is read as a date."""

Compared = tuple[bool | None, float]
"""Whether the two match (None: nothing was compared), and how well, before weighting."""


class UndefinedUpstreamError(Exception):
    """Arcade's reading of a text depends on the day, or the text is too long to read here."""


def require_critic(path: str, critic: Critic) -> Critic:
    """Return the matcher if Arcade has a critic like it. Raises InputError if not."""
    if not isinstance(critic, Exact | Numeric | Similar | DateTime):
        known = "exact, numeric, similar, datetime"
        raise InputError.at(path, f"Arcade has no critic like {find_kind(type(critic))}; it has {known}")
    if isinstance(critic, Numeric) and critic.value_range is None:
        raise InputError.at(path, "Arcade's numeric critic needs a value_range")
    return critic


def compare(
    critic: Critic | None, expected: JsonValue, actual: JsonValue, today: date | None = None
) -> Compared | None:
    """Compare as Arcade's `evaluate` does; None where it raises. Without a critic, nothing is compared.

    Raises UndefinedUpstreamError where the number depends on the day.
    """
    try:
        if isinstance(critic, Exact):
            match = expected == _cast(expected, actual)
            return match, float(match)
        if isinstance(critic, Numeric):
            low, high = critic.value_range or (0.0, 1.0)
            one, other = (float(cast("str | float", value)) for value in (expected, actual))
            share = 1 - abs((one - low) / (high - low) - (other - low) / (high - low))
            return share >= critic.threshold, share
        if isinstance(critic, Similar):
            texts = [" ".join(map(str, v)) if isinstance(v, list) else str(v) for v in (expected, actual)]
            share = arcade_cosine(*texts)
            return share >= critic.threshold, min(share, 1.0)
        return _compare_dates(critic, expected, actual, today) if isinstance(critic, DateTime) else (None, 0.0)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError):
        return None


def _cast(expected: JsonValue, actual: JsonValue) -> JsonValue:
    """Convert the actual value by the constructor of the expected one's type: bool("False") is True, as upstream.

    The text "None" counts as null here, but the comparison afterwards still sees the expected text.
    """
    if actual is None or actual == "None":
        return None
    if expected is None or expected == "None":
        return actual
    try:
        return cast("Callable[[JsonValue], JsonValue]", type(expected))(actual)
    except (ValueError, TypeError):
        return actual


def _compare_dates(critic: DateTime, expected: JsonValue, actual: JsonValue, today: date | None) -> Compared:
    """Return 1 within the tolerance, 0 from the maximum difference on, and in between 1 minus the *whole* difference's share.

    If only one of the two has a zone, it is dropped.
    """
    if not isinstance(expected, str) or not isinstance(actual, str):
        return False, 0.0
    try:
        one, other = read_date(expected, today), read_date(actual, today)
    except (ValueError, TypeError):
        return False, 0.0
    if one.tzinfo is not None and other.tzinfo is not None:
        one, other = one.astimezone(UTC), other.astimezone(UTC)
    seconds = abs((one.replace(tzinfo=None) - other.replace(tzinfo=None)).total_seconds())
    tolerance = critic.tolerance if "tolerance" in critic.model_fields_set else TOLERANCE_S
    most = MAX_DIFFERENCE_S if critic.cutoff is None else critic.cutoff
    if seconds <= tolerance:
        return True, 1.0
    return False, 1 - seconds / most if seconds < most else 0.0


def read_date(text: str, today: date | None) -> datetime:
    """Read a text as dateutil reads it on a given day.

    Raises what dateutil raises (ValueError and its subclasses), and UndefinedUpstreamError where no day is given and it matters.

    >>> str(read_date("5/6/2024 3pm", None)), str(read_date("10:00", date(2024, 5, 6)))
    ('2024-05-06 15:00:00', '2024-05-06 10:00:00')
    >>> read_date("3 PM", None)
    Traceback (most recent call last):
    service.core.methods.arcade_critics.UndefinedUpstreamError: '3 PM' leaves out a part of the date, which is filled from today
    """
    if len(text) > MAX_DATE_CHARS:
        raise UndefinedUpstreamError(f"a date of {len(text)} characters")
    days = [(2000, 1, 1), (2003, 12, 31)]  # they differ in all parts: a text that reads alike on both depends on no day
    if today is not None:
        days = [(today.year, today.month, today.day)]

    def find_zone(_name: str | None, offset: int | None) -> tzinfo | None:  # a name without an offset has none
        return None if offset is None else tz.tzoffset(None, offset)

    first, last = (parser.parse(text, default=datetime(*day), tzinfos=find_zone) for day in (days[0], days[-1]))
    if first.replace(tzinfo=None) != last.replace(tzinfo=None):
        raise UndefinedUpstreamError(f"{text!r} leaves out a part of the date, which is filled from today")
    return first
