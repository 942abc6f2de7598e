"""Read dates and times, in ISO 8601 or given formats, the same way on every machine and every day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1)
_MAX_TEXT_CHARS = 100

_ISO_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{4}-W[0-9]{2}(?:-[1-7])?|[0-9]{4}W[0-9]{2}[1-7]?"
_ISO_TIME = r"(?:[01][0-9]|2[0-3])[0-9:.,]*(?:Z|[+-][0-9:.]+)?"
_ISO = re.compile(rf"(?P<date>{_ISO_DATE})(?:[T ]{_ISO_TIME})?")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_TIME_PARTS = frozenset("HIMSfp")
_DATE_PARTS = frozenset("aAbBdmyYjuwUWGV")
_KNOWN = _TIME_PARTS | _DATE_PARTS | frozenset("z%")
_SAME_PART = ("HI", "bBm", "yYG", "aAuw", "UWV")
"""Directives that name the same part of a date or time."""
_LOCAL = frozenset("ZcxX")
"""Directives that mean something else on another machine."""
_MACHINE_ZONES = frozenset({"localtime", "posixrules", "posix", "right"})


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or time as read: `instant` is the time since 1970-01-01T00:00, in UTC if `aware`, else in clock time.

    `of_day` marks a time of day, whose instant lies on 1900-01-01.
    """

    instant: timedelta
    aware: bool
    of_day: bool = False
    date_only: bool = False

    def explain_incomparable(self, other: Moment) -> str:
        """Explain why the distance between the two has no meaning; "" where it has one."""
        if self.of_day != other.of_day:
            return "one is a time of day, the other has a date"
        same = self.aware == other.aware
        return "" if same else "one names its zone, the other none; assume_zone says which is meant"


def read(text: str, *, formats: tuple[str, ...] = (), assume_zone: str | None = None) -> Moment | None:
    """Read the moment that a text names as ISO 8601, else by the first format that fits; None where none does."""
    if len(text) > _MAX_TEXT_CHARS:
        return None
    in_formats = (_read_as(text, form, assume_zone) for form in formats)
    return _read_iso(text, assume_zone) or next(filter(None, in_formats), None)


def _read_iso(text: str, assume_zone: str | None) -> Moment | None:
    form = _ISO.fullmatch(text.upper())
    if form is None:
        return None
    try:
        when = datetime.fromisoformat(form.group())
        return _build_moment(when, assume_zone, date_only=form.group() == form["date"])
    except (ValueError, OverflowError):
        return None


def _read_as(text: str, form: str, assume_zone: str | None) -> Moment | None:
    try:
        when = datetime.strptime(text, form)
        if not _DATE_PARTS & _list_parts(form):
            return _build_moment(when, None, of_day=True)
        return _build_moment(when, assume_zone, date_only=not _TIME_PARTS & _list_parts(form))
    except (ValueError, OverflowError):
        return None


def _build_moment(when: datetime, assume_zone: str | None, *, of_day: bool = False, date_only: bool = False) -> Moment:
    """Build a moment from an instant: two datetimes of one zone would subtract as clock times, ignoring DST."""
    if when.tzinfo is None and assume_zone is not None:
        when = when.replace(tzinfo=find_zone(assume_zone))
    offset = when.utcoffset()
    instant = when.replace(tzinfo=None) - _EPOCH
    return Moment(instant - (offset or timedelta()), offset is not None, of_day, date_only)


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """Return the zone of a name: UTC, an IANA name or an offset such as +09:00. Raise ValueError for any other."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-ahead if sign == "-" else ahead)
    if name.partition("/")[0] in _MACHINE_ZONES:
        raise ValueError(f"the zone {name[:80]!r} differs from machine to machine")
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{name[:80]!r} is not UTC, an IANA time zone or an offset such as +09:00") from None


@lru_cache(maxsize=256)
def _list_parts(form: str) -> frozenset[str]:
    return frozenset(_DIRECTIVE.findall(form)) - {"%"}


def check_format(form: str) -> str:
    """Return the format itself. Raise ValueError where its meaning would depend on the machine or the day.

    >>> check_format("%d/%m/%Y %H:%M"), check_format("%I:%M %p")
    ('%d/%m/%Y %H:%M', '%I:%M %p')
    >>> check_format("%d %B")
    Traceback (most recent call last):
    ValueError: the format '%d %B' names a part of a date but not all of it; what is missing would be made up
    """
    used = [part for part in _DIRECTIVE.findall(form) if part != "%"]
    problem = _find_problem(used, frozenset(used))
    if problem:
        raise ValueError(f"the format {form[:80]!r} {problem}")
    return form


def _find_problem(used: list[str], parts: frozenset[str]) -> str:
    if parts & _LOCAL:
        return f"has %{min(parts & _LOCAL)}, which differs from machine to machine"
    if parts - _KNOWN:
        return f"has %{min(parts - _KNOWN)}, which is no directive of strptime"
    if any(sum(part in same for part in used) > 1 for same in (*_SAME_PART, *parts)):
        return "names one part twice"
    if parts & _DATE_PARTS and not _is_whole_date(parts):
        return "names a part of a date but not all of it; what is missing would be made up"
    if parts & _TIME_PARTS and not (parts & frozenset("HI") and ("I" in parts) == ("p" in parts)):
        return "names a time without its hour, or an hour of 12 without %p (or %p without it)"
    return "" if parts - {"z"} else "names neither a date nor a time"


def _is_whole_date(parts: frozenset[str]) -> bool:
    weekday, month = parts & frozenset("aAuw"), parts & frozenset("bBm")
    if "G" in parts:
        return "V" in parts and bool(weekday) and not parts & frozenset("bBmdjUW")
    if "V" in parts or not parts & frozenset("yY"):
        return False
    by_month = bool(month) and "d" in parts
    by_week = bool(parts & frozenset("UW")) and bool(weekday)
    return [by_month, "j" in parts, by_week].count(True) == 1 and (by_month or not (month or "d" in parts))
