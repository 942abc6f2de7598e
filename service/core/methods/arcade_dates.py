"""Read texts as moments the way Arcade does, with dateutil.

dateutil accepts many ways of writing a date, prefers the American order where both are possible, and fills in what a text
leaves out from today. The core has no clock: a rubric may name the day, and without one a text that leaves something out
cannot be read. Only UTC's zone names are known, as on a machine that is set to UTC.
"""

from __future__ import annotations

from datetime import date, datetime, tzinfo

from dateutil import parser, tz

MAX_CHARS = 1_000
"""The longest text that is read."""

_SOME_DAY, _ANOTHER_DAY = datetime(2000, 1, 1), datetime(2003, 12, 31)
"""Two days that differ in all parts: a text that reads alike on both does not depend on the day."""


class UndefinedUpstreamError(Exception):
    """Arcade's reading of a text depends on the day, or the text is too long to read here."""


def read_moments(expected: str, actual: str, today: date | None) -> tuple[datetime, datetime]:
    """Read both texts as dateutil reads them on a given day.

    Raises what dateutil raises (ValueError and its subclasses), and UndefinedUpstreamError where no day is given and it matters.

    >>> [str(moment) for moment in read_moments("5/6/2024 3pm", "2024-05-06T15:00Z", None)]
    ['2024-05-06 15:00:00', '2024-05-06 15:00:00+00:00']
    >>> [str(moment) for moment in read_moments("noon 3 PM", "10:00", date(2024, 5, 6))]
    Traceback (most recent call last):
    dateutil.parser._parser.ParserError: Unknown string format: noon 3 PM
    >>> read_moments("3 PM", "3 PM", None)
    Traceback (most recent call last):
    service.core.methods.arcade_dates.UndefinedUpstreamError: '3 PM' leaves out a part of the date, which is filled from today
    """
    return _read_moment(expected, today), _read_moment(actual, today)


def _read_moment(text: str, today: date | None) -> datetime:
    if len(text) > MAX_CHARS:
        raise UndefinedUpstreamError(f"a date of {len(text)} characters")
    if today is not None:
        return _parse(text, datetime(today.year, today.month, today.day))
    moment = _parse(text, _SOME_DAY)
    if moment.replace(tzinfo=None) != _parse(text, _ANOTHER_DAY).replace(tzinfo=None):
        raise UndefinedUpstreamError(f"{text!r} leaves out a part of the date, which is filled from today")
    return moment


def _parse(text: str, today: datetime) -> datetime:
    return parser.parse(text, default=today, tzinfos=_find_zone)


def _find_zone(_name: str | None, offset: int | None) -> tzinfo | None:
    """Return the zone of an offset in seconds; a name without an offset has none."""
    return None if offset is None else tz.tzoffset(None, offset)
