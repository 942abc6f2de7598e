"""Find days with the wrong weekday beside them: `May 3, a Monday`, `in 14 days (Wednesday)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from service.core.evidence.facts.entities import Holdings, list_days
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.verdicts import Ruling, Saying, Verdict
from service.core.evidence.reading.dates import RELATIVE, WEEKDAYS, is_same_day, name_weekday, read_relative_date
from service.core.evidence.reading.quantities import Quantity

_NAMES = "|".join(WEEKDAYS)
_OTHER_YEAR = re.compile(r"\b(?:((?:19|20)\d\d)(?![-\d])|(?:last|next|previous|following) year)\b", re.IGNORECASE)
_BEFORE = re.compile(rf"\b({_NAMES})(?:,| \(|,? the| )+ ?$", re.IGNORECASE)
_REST = (
    rf"({_NAMES})\b(?!,? (?:and|or|to|through) (?:{_NAMES})\b)(?! (?!and|at|but|by|from|in|so|until|when|which)[a-z])"
)
"""The weekday, unless it begins a list or names something else: `a Saturday delivery`."""
_AFTER = re.compile(rf"^(?:,| \(|,? (?:is|was) an?|, an?| )+{_REST}", re.IGNORECASE)
_AFTER_SPAN = re.compile(rf"^(?:,| \(|,? (?:is|was) an?|,(?: on)? an?|,? on| )+{_REST}", re.IGNORECASE)
"""What stands after `in 3 days`, where `on Friday` says which day that is; after a date it begins something new."""
_RELATIVE = re.compile(RELATIVE, re.IGNORECASE)
_SIDE = 16


def check_weekdays(
    text: str, quantities: Sequence[Quantity], holdings: Holdings, today: date | None
) -> Iterator[Saying]:
    """Find dates beside the name of another weekday; without a year, a result with that day or `today` tells it.

    What is counted from `today` (`in 3 days, a Friday`) is only suspected: it may be another day elsewhere.
    """
    for said in quantities:
        beside = _find_beside(text, said.start, said.end) if said.kind == "date" else ""
        ruling = _check_date(text, said, beside, holdings, today) if beside else None
        if ruling is not None:
            yield Saying(said.start, said.end, said.text, ruling, firm=True)
    if today is not None:
        yield from _check_relative(text, today)


def _check_relative(text: str, today: date) -> Iterator[Saying]:
    for match in _RELATIVE.finditer(text):
        days = read_relative_date(match.group(), today)
        beside = _find_beside(text, *match.span(), after=_AFTER_SPAN) if len(days) == 1 else ""
        if beside and name_weekday(days[0]) != beside:
            yield Saying(*match.span(), match.group(), _refute(beside, days[0], "suspected"))


def _check_date(text: str, said: Quantity, beside: str, holdings: Holdings, today: date | None) -> Ruling | None:
    known = [
        (fact, day)
        for fact in holdings.dated
        for day in list_days(fact)
        if any(is_same_day(day, str(one)) for one in said.values)
    ]
    days = {str(one)[:10] for one in said.values if not str(one).startswith("--")} or {day for _, day in known}
    if not has_year(said) and _list_years_near(text, said) - {day[:4] for day in days}:
        return None
    if not days and today is not None:
        near = [f"{today.year + n}{str(one)[1:]}" for one in said.values for n in (0, -1, 1)]
        may_be = {beside, ""}.intersection(map(name_weekday, near))
        return None if may_be else _refute(beside, near[0], "suspected")
    name = name_weekday(min(days)) if len(days) == 1 else ""
    return None if name in (beside, "") else _refute(beside, min(days), "contradicted", known[0][0] if known else None)


def _list_years_near(text: str, said: Quantity) -> set[str | None]:
    """Return the years beside a date; None among them for `last year` and the like."""
    return {one[1] for one in _OTHER_YEAR.finditer(text, max(0, said.start - 80), said.end + 80)}


def _refute(beside: str, day: str, verdict: Verdict, fact: Fact | None = None) -> Ruling:
    note = f"the text says {beside.capitalize()}, {day} is a {name_weekday(day).capitalize()}"
    return Ruling(verdict, fact.pointer if fact else None, None, "wrong_weekday", note, None)


def has_year(said: Quantity) -> bool:
    """Whether a date includes its year."""
    return all(str(one)[:2] != "--" for one in said.values)


def _find_beside(text: str, start: int, end: int, after: re.Pattern[str] = _AFTER) -> str:
    beside = _BEFORE.search(text[max(0, start - _SIDE) : start]) or after.search(text[end : end + 2 * _SIDE])
    return beside[1].lower() if beside else ""
