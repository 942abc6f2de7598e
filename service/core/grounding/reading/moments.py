"""Read days, times of day and durations as people write them. A reading that leaves something out says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from service.core.grounding.reading.languages import MONTHS, NAMED_TIMES, list_number_words

DAY_S = 86_400

_MONTH = "|".join(sorted([re.escape(name) for name in MONTHS], key=len, reverse=True))
_YEAR = r"(?:1[5-9]|2[01])\d\d"
_ORDINAL = r"(?:st|nd|rd|th|er|\.|º|ª)?"
_OF = r"(?:of[ ]|de[ ]|del[ ])?"
ISO = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})(?:(?P<gap>[T ]|,[ ])(?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d{1,9})?"
    r"(?P<zone>[ ]?(?:Z|UTC|GMT)\b|[+-]\d{2}:?\d{2})?)?(?!\d)"
)
PROSE = re.compile(
    rf"(?P<m1>{_MONTH})\b\.?[ ](?:the[ ])?(?P<d1>\d{{1,2}}){_ORDINAL}"
    rf"(?:[ ]?(?:[-\u2013\u2014]|to|and|&)[ ]?(?P<e1>\d{{1,2}}){_ORDINAL}"
    rf"(?![:\d]|[ ]?[ap]\.?m\b))?(?!\d|:\d|[.,]\d)(?:,?[ ]{_OF}(?P<y1>{_YEAR})(?!\d))?"
    rf"|(?P<d2>\d{{1,2}}){_ORDINAL}"
    rf"(?:[ ]?(?:[-\u2013\u2014]|to|and|bis|und|a|al|y|au|et)[ ]?(?P<e2>\d{{1,2}}){_ORDINAL})?[ -]{_OF}"
    rf"(?P<m2>{_MONTH})\b\.?(?:(?:,?[ ]{_OF}|-)(?P<y2>{_YEAR})(?!\d))?"
    rf"|(?P<m3>{_MONTH})\b\.?[ ]{_OF}(?P<y3>{_YEAR})(?!\d)",
    re.IGNORECASE,
)
NUMERIC = re.compile(
    r"(?P<a>\d{1,4})(?P<mark>[/.-])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{4}|\d{2})(?![\d/-]|\.\d)"
    r"|(?P<d>\d{1,2})(?P<short>[/.])(?P<e>\d{1,2})(?:(?<=\d)\.(?!\d)|(?![\d/.]))"
)
CLOCK = re.compile(
    r"(?P<h>\d{1,2})(?P<sep>[:.h]|[ ]h[ ]?)(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?"
    r"(?P<tail>[ \u202f]?(?:[ap]\.[ ]?m\b\.?|[ap]m\b|Uhr\b|h\b))?"
    r"(?:[ ]?(?P<zone>Z|UTC|GMT)(?P<offset>[+-]\d{1,2}(?::?\d{2})?)?\b)?(?![\d:])"
    r"|(?P<h2>\d{1,2})[ \u202f]?(?P<tail2>[ap]\.[ ]?m\b\.?|[ap]m\b|Uhr(?:[ ](?P<m2>[0-5]\d)\b)?|o['\u2019]clock)",
    re.IGNORECASE,
)
_ISO_DURATION = re.compile(
    r"P(?=[\dT])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?\b"
)
_SHORT_DURATION = re.compile(r"()()()(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?")
_DURATION_PARTS_S = (31_556_952, 2_629_746, 604_800, DAY_S, 3_600, 60, 1)


class Day(NamedTuple):
    """A calendar day; a year or a day of 0 was not said."""

    year: int
    month: int
    day: int

    def may_be(self, other: Day) -> bool:
        """Whether both can be the same day."""
        return self.month == other.month and all(
            a == b or 0 in (a, b) for a, b in ((self.year, other.year), (self.day, other.day))
        )

    @property
    def date(self) -> date | None:
        """The day in the calendar; None where a part was not said."""
        return date(self.year, self.month, self.day) if self.year and self.day else None


class Time(NamedTuple):
    """A time of day in seconds. `exact`: on the 24-hour clock or with am or pm, so that 3:00 cannot be 15:00."""

    seconds: int
    exact: bool = True


def build_day(year: int, month: int, day: int) -> Day | None:
    """Return the day, or None if there is none such; 0 stands for what was not said."""
    try:
        date(year or 2000, month, day or 1)
    except ValueError:
        return None
    return Day(year, month, day)


def read_prose_day(match: re.Match[str]) -> list[Day]:
    """Return the day that words give, or both ends of a range of days."""
    found = match.groupdict()

    def get(name: str) -> str | None:
        return next((found[f"{name}{n}"] for n in "123" if found.get(f"{name}{n}")), None)

    month, year = MONTHS[str(get("m")).lower()], int(get("y") or 0)
    days = [build_day(year, month, int(day)) for day in (get("d"), get("e")) if day] or [build_day(year, month, 0)]
    return [day for day in days if day is not None]


def read_numeric_day(match: re.Match[str]) -> list[Day]:
    """Return every day that digits can mean: `05/06/2024` is ambiguous."""
    if match["a"] is None:
        first, second, year = int(match["d"]), int(match["e"]), 0
    elif len(match["a"]) == 4:
        year, first, second = int(match["a"]), int(match["b"]), int(match["c"])
        found = build_day(year, first, second)
        return [found] if found else []
    elif len(match["a"]) == 3:
        return []
    else:
        first, second, third = int(match["a"]), int(match["b"]), int(match["c"])
        year = third + 2000 if third < 100 else third
    options = [build_day(year, second, first)]
    if "." not in match.group():
        options.insert(0, build_day(year, first, second))
    return list(dict.fromkeys(day for day in options if day is not None and day.day))


def read_iso_day(text: str) -> Day | None:
    """Return the day of an ISO date."""
    year, month, day = map(int, text.split("-"))
    return build_day(year, month, day) if year and day else None


def read_clock(match: re.Match[str]) -> Time | None:
    """Return a time of day."""
    hour = int(match["h"] or match["h2"])
    minute, second = int(match["m"] or match["m2"] or 0), int(match["s"] or 0)
    tail = (match["tail"] or match["tail2"] or "").strip().lower()
    half = tail[:1] if tail[:1] in ("a", "p") else ""
    if hour > 24 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    exact = bool(half) or hour > 12 or match.group().startswith("0")
    return Time((hour % 24) * 3_600 + minute * 60 + second, exact)


_SPOKEN = re.compile(
    r"(?:(?P<half>half|halb)|(?P<count>(?:twenty|zwanzig|\w{2,8})(?:-five)?))(?:[ ](?P<way>past|after|to|before|nach|vor))?[ ]"
    r"(?P<hour>\w+)",
    re.IGNORECASE,
)
_LATER = ("past", "after", "nach")


def find_spoken_time(text: str, at: int, language: str) -> tuple[Time, int] | None:
    """Read a time like `a quarter to ten`, `twenty past midnight`, `halb acht` at a character; return it with its end."""
    match = _SPOKEN.match(text, at)
    if match is None:
        return None
    words, name, way = list_number_words(language), match["hour"].lower(), (match["way"] or "").lower()
    hour = NAMED_TIMES[name] // 3_600 if name in NAMED_TIMES else words.get(name, int(name) if name.isdecimal() else -1)
    count = match["count"].lower() if match["count"] else ""
    minutes = 30 if match["half"] else 15 if count in ("quarter", "viertel") else words.get(count, 0)
    if not 0 <= hour <= 24 or not minutes or not (way or (match["half"] and language == "de")):
        return None
    minutes = minutes if way in _LATER else -minutes
    return Time((hour * 60 + minutes) * 60 % DAY_S, name in NAMED_TIMES), match.end()


_AT = re.compile(
    r"(?:\b(?:at|by|until|till|from|after|before|um|ab|bis|nach|vor|desde|antes de|después de|avant|après|a[ ]las?|à)"
    r"|[-\u2013])[ ]?$"
)


def read_hour(text: str, start: int, number: float) -> Time | None:
    """Return the hour that a bare number after `at` and the like may be."""
    if not 1 <= number <= 24 or number != number // 1 or not _AT.search(text[max(0, start - 12) : start].lower()):
        return None
    return Time(int(number) % 24 * 3_600, number > 12)


def read_short_duration(text: str) -> float | None:
    """Return the seconds of `2h15m` or of an ISO 8601 duration; None if the text is neither."""
    match = (_SHORT_DURATION if text[:1].isdecimal() else _ISO_DURATION).fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    return sum(float(part or 0) * size for part, size in zip(match.groups(), _DURATION_PARTS_S, strict=True))


_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?")


def list_instants(day: Day, clock: str, zone: str) -> Iterator[tuple[Day, Time]]:
    """Yield the local day and time of a moment and, where its zone is told, those in UTC."""
    hour, minute, *rest = map(int, clock.split(":"))
    if hour > 23 or minute > 59:
        return
    local = datetime(day.year, day.month, day.day, hour, minute, rest[0] if rest and rest[0] < 60 else 0, tzinfo=UTC)
    yield day, Time(hour * 3_600 + minute * 60 + local.second)
    offset = _OFFSET.search(zone)
    if offset is not None:
        away = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        try:
            moved = local - away if offset[1] == "+" else local + away
        except OverflowError:
            return
        yield Day(moved.year, moved.month, moved.day), Time(moved.hour * 3_600 + moved.minute * 60 + moved.second)


EPOCH_S = range(500_000_000, 4_000_000_000)
"""Numbers that may be moments in seconds since 1970: from 1985 to 2096."""


def read_epoch(value: float) -> tuple[Day, Time] | None:
    """Return the moment in UTC of seconds or milliseconds since 1970; None if it is none of 1985 to 2096."""
    seconds = int(value)
    if seconds not in EPOCH_S:
        seconds //= 1_000
    if seconds not in EPOCH_S:
        return None
    at = datetime.fromtimestamp(seconds, UTC)
    return Day(at.year, at.month, at.day), Time(at.hour * 3_600 + at.minute * 60 + at.second)
