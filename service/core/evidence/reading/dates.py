"""Read dates and times as people write them. Relative words need a reference date, which only the trace can give."""

from __future__ import annotations

import re
from datetime import MAXYEAR, MINYEAR, date, timedelta

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH_OF = (
    {name: n for n, name in enumerate(MONTHS, 1)} | {name[:3]: n for n, name in enumerate(MONTHS, 1)} | {"sept": 9}
)
_FOREIGN = {
    name: n
    for names in (
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    )
    for n, name in enumerate(names.split(), 1)
}
"""Months in German, French, Spanish, Italian, Dutch and Portuguese: each stands for one month, whatever the language."""
_DAY_OF = {name: n for n, name in enumerate(WEEKDAYS)}
_NUMBER_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_COUNT = {"a": 1, **{name: n for n, name in enumerate(_NUMBER_WORDS, 1)}}

_MONTH = "(?:" + "|".join([*MONTHS, "sept", *(name[:3] for name in MONTHS if name != "may")]) + r")\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?![\d:]|[.,]\d)"
_YEAR = r"(?:1[6-9]|2[01])\d\d"
"""Years from 1600 to 2199, so that the 2500 of `September 18, 2500 words` is not one."""
ISO = r"(?<!\d)\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?!\d)"
PROSE = (
    rf"\b{_MONTH}[ ](?:the[ ])?{_DAY}(?:,?[ ](?:of[ ])?{_YEAR}(?!\d))?"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?:[ ]of)?[ ]{_MONTH}(?:,?[ ]{_YEAR}(?!\d))?"
    rf"|\b\d{{1,2}}(?:\.|er|º|°)?[ ](?:de[ ])?(?:{'|'.join(_FOREIGN)})\b(?:[ ](?:de[ ])?{_YEAR}(?!\d))?"
)
NUMERIC = r"(?<![\d/.])(?:\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})|\d{1,2}\.\d{1,2}\.\d{4}|\d{4}/\d{2}/\d{2})(?![\d/])"
RELATIVE = (
    r"\b(?:the day (?:after tomorrow|before yesterday)|today|tonight|tomorrow|yesterday"
    r"|in (?:a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3}) (?:day|week)s?\b"
    r"|(?:a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3}) (?:day|week)s? ago\b"
    r"|(?:(?:this|next|last|on|coming) )?(?:" + "|".join(WEEKDAYS) + r"))\b"
)
TIME = (
    r"(?<![\d:.])\d{1,2}:\d{2}(?::\d{2})?(?:[ \u202f]?[ap]\.?m\b\.?|(?![:\d]))"
    r"|(?<![\d:.])\d{1,2}(?:\.[0-5]\d)?[ \u202f]?[ap]\.?m\b\.?"
)

_PARTS = re.compile(r"\d+|[^\W\d_]+")


def build_iso_date(year: int | None, month: int, day: int) -> str | None:
    """Return `2024-05-20`, or `--05-20` without a year; None if there is no such day.

    >>> build_iso_date(2024, 5, 20), build_iso_date(None, 5, 20), build_iso_date(2023, 2, 29)
    ('2024-05-20', '--05-20', None)
    """
    try:
        found = date(2000 if year is None else year, month, day)
    except (ValueError, OverflowError):
        return None
    return found.isoformat() if year is not None else f"--{month:02}-{day:02}"


def name_weekday(day: str) -> str:
    """Return the weekday of an ISO date; "" if there is no such day.

    >>> name_weekday("2024-01-01"), name_weekday("--01-01")
    ('monday', '')
    """
    try:
        return WEEKDAYS[date.fromisoformat(day[:10]).weekday()]
    except ValueError:
        return ""


def read_iso_date(text: str) -> str | None:
    """Return the calendar date of an ISO date, or date and time, as written, ignoring its zone; None if there is no such day."""
    year, month, day = text[:10].split("-")
    return build_iso_date(int(year), int(month), int(day))


def read_prose_date(text: str) -> str | None:
    """Return the date that words give; None if there is no such day.

    >>> read_prose_date("May 20th"), read_prose_date("3rd of March, 2025"), read_prose_date("June 31")
    ('--05-20', '2025-03-03', None)
    >>> read_prose_date("5. Mai 2026"), read_prose_date("1er août"), read_prose_date("3 de marzo de 2027")
    ('2026-05-05', '--08-01', '2027-03-03')
    """
    month, numbers = 0, list[int]()
    for part in _PARTS.findall(text.lower()):
        month = month or _MONTH_OF.get(part) or _FOREIGN.get(part, 0)
        if part.isdigit():
            numbers.append(int(part))
    return build_iso_date(numbers[1] if numbers[1:] else None, month, numbers[0]) if month and numbers else None


def read_numeric_date(text: str) -> tuple[str, ...]:
    """Return every day that an all-numeric date can mean: `05/06/2024` is ambiguous.

    >>> read_numeric_date("05/06/2024"), read_numeric_date("20.5.2024"), read_numeric_date("2024/05/20")
    (('2024-05-06', '2024-06-05'), ('2024-05-20',), ('2024-05-20',))
    """
    first, second, third = (int(part) for part in re.split(r"[/.]", text))
    if first > 31:
        options = [build_iso_date(first, second, third)]
    else:
        year = third + 2000 if third < 100 else third
        by_day = build_iso_date(year, second, first)
        options = [by_day] if "." in text else [build_iso_date(year, first, second), by_day]
    return tuple(dict.fromkeys([option for option in options if option]))


def read_relative_date(text: str, reference: date) -> tuple[str, ...]:
    """Return the days that relative words can mean: a bare weekday may lie before or after, and `next` may skip a week.

    >>> read_relative_date("tomorrow", date(2024, 5, 15)), read_relative_date("in two weeks", date(2024, 5, 15))
    (('2024-05-16',), ('2024-05-29',))
    >>> read_relative_date("next Friday", date(2024, 5, 15)), read_relative_date("last Monday", date(2024, 5, 15))
    (('2024-05-17', '2024-05-24'), ('2024-05-13', '2024-05-06'))
    """
    words = text.lower().split()
    days = _list_weekday_offsets(words, reference) if words[-1] in _DAY_OF else (_find_offset(words),)
    return tuple([found for found in (_shift(reference, n) for n in days) if found])


def _list_weekday_offsets(words: list[str], reference: date) -> tuple[int, ...]:
    ahead = (_DAY_OF[words[-1]] - reference.weekday()) % 7
    qualifier = words[0] if words[1:] else ""
    if qualifier == "last":
        back = ahead - 7
        return (back, back - 7)
    if qualifier == "next":
        return (ahead or 7, ahead + 7) if ahead else (7, 14)
    if qualifier == "coming":
        return (ahead or 7, ahead)
    return (ahead, ahead - 7, ahead + 7)


def _find_offset(words: list[str]) -> int:
    fixed = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
    if words[0] in fixed:
        return fixed[words[0]]
    if words[0] == "the":
        return 2 if words[-1] == "tomorrow" else -2
    count, unit = (words[1], words[2]) if words[0] == "in" else (words[0], words[1])
    n = (int(count) if count.isdigit() else _COUNT[count]) * (7 if unit.startswith("week") else 1)
    return n if words[0] == "in" else -n


def _shift(reference: date, days: int) -> str | None:
    at = reference.toordinal() + days
    if not date(MINYEAR, 1, 1).toordinal() <= at <= date(MAXYEAR, 12, 31).toordinal():
        return None
    return (reference + timedelta(days=days)).isoformat()


def is_same_day(one: str, other: str) -> bool:
    """Whether two dates can be the same: a missing year matches any year.

    >>> is_same_day("2024-05-20", "--05-20"), is_same_day("2024-05-20", "2023-05-20")
    (True, False)
    """
    if one.startswith("--") or other.startswith("--"):
        return one[-5:] == other[-5:]
    return one[:10] == other[:10]


def read_time(text: str) -> str | None:
    """Return a time of day as `hh:mm:ss`, on the 24-hour clock unless it says am or pm; None if there is no such time.

    >>> read_time("6:05 pm"), read_time("06:00"), read_time("12 AM"), read_time("25:00")
    ('18:05:00', '06:00:00', '00:00:00', None)
    """
    numbers = [int(n) for n in re.findall(r"\d+", text)] + [0, 0]
    hour, minute, second = numbers[:3]
    meridiem = next((c for c in text.lower() if c in "ap"), None)
    if meridiem and not 1 <= hour <= 12:
        return None
    if meridiem:
        hour = hour % 12 + (12 if meridiem == "p" else 0)
    return f"{hour:02}:{minute:02}:{second:02}" if hour < 24 and minute < 60 and second < 60 else None
