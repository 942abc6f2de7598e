"""Days against the calendar and the run's own clock: a weekday beside a date, `tomorrow` of a day that results give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice

from service.core.evidence.narration.claims import REACH, Claim, find_claims, is_open
from service.core.evidence.narration.entities import narrow
from service.core.evidence.narration.fact_index import FactIndex
from service.core.evidence.narration.facts import Fact
from service.core.evidence.narration.slots import find_typed
from service.core.evidence.narration.verdicts import Ruling, Utterances, build_suspicion
from service.core.evidence.reading.dates import WEEKDAYS, is_same_day, read_relative_date
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.words import split_tokens

_NAMES = "|".join(WEEKDAYS)
_PAIR = re.compile(
    rf"\b(?P<day>{_NAMES})(?:,| \(|,? the| )+ ?$|^(?:,| \(| is a| was a| )+(?P<after>{_NAMES})\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:the day after tomorrow|the day before yesterday|today|tonight|tomorrow|yesterday"
    r"|in (?:a|one|two|three|four|five|six|seven|ten|\d{1,3}) (?:day|week)s?"
    r"|(?:a|one|two|three|four|five|six|seven|ten|\d{1,3}) (?:day|week)s? ago)\b(?!['\u2019]s)",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(rf"\b(?:{_NAMES})\b", re.IGNORECASE)
_MAX_NEAR_DAYS = 60
MAX_DAYS, MAX_SAID = 500, 40
"""Days that results give, and relative days and weekdays of a text that are held against them."""

Finding = tuple[Claim, Ruling]


def check_days(text: str, fact_index: FactIndex, utterances: Utterances) -> Iterator[Finding]:
    """Weekdays beside dates that are other days; relative days and bare weekdays that are not those of the record meant."""
    groups = find_typed(_build_claim(text, 0, 0, ()), fact_index)
    days = [(fact, day) for group in groups for fact in group.facts for day in _list_days(fact)]
    dates = [claim.quantity for claim in find_claims(text) if claim.quantity.kind == "date"]
    yield from _check_weekdays(text, dates, days)
    if not days or len(days) > MAX_DAYS:
        return
    for match in islice(_RELATIVE.finditer(text), MAX_SAID) if utterances.today else ():
        meant = read_relative_date(match.group(), utterances.today) if utterances.today else ()
        yield from _check_day(_build_claim(text, *match.span(), meant), days, fact_index, text, utterances)
    for match in islice(_WEEKDAY.finditer(text), MAX_SAID):
        if not any(abs(one.start - match.end()) < 8 or abs(match.start() - one.end) < 8 for one in dates):
            yield from _check_weekday(text, match, days)


def _check_weekdays(text: str, dates: Sequence[Quantity], days: Sequence[tuple[Fact, str]]) -> Iterator[Finding]:
    for said in dates:
        beside = _PAIR.search(text[max(0, said.start - 16) : said.start]) or _PAIR.search(
            text[said.end : said.end + 16]
        )
        name = (beside["day"] or beside["after"] or "").lower() if beside else ""
        known = [(fact, day) for fact, day in days if any(is_same_day(day, str(one)) for one in said.values)]
        years = {str(one)[:10] for one in said.values if not str(one).startswith("--")} or {day for _, day in known}
        if name and len(years) == 1 and _name_weekday(min(years)) not in (name, ""):
            claim = _build_claim(text, said.start, said.end, said.values)
            note = f"the text says {name.capitalize()}, {min(years)} is a {_name_weekday(min(years)).capitalize()}"
            yield claim, Ruling("contradicted", known[0][0].pointer if known else None, None, "wrong_weekday", note)


def _check_day(
    claim: Claim, days: Sequence[tuple[Fact, str]], fact_index: FactIndex, text: str, utterances: Utterances
) -> Iterator[Finding]:
    """A relative day that no result gives: of one day it is contradicted, of several it is suspected."""
    said = [str(value) for value in claim.quantity.values]
    fitting = any(is_same_day(day, one) for _, day in days for one in said)
    if not said or not claim.plain or utterances.has(claim.quantity):
        return
    narrowed = narrow(fact_index.build_family(find_typed(claim, fact_index)), claim, text)
    held = {day for fact in narrowed.facts for day in _list_days(fact)}
    if fitting and (
        not narrowed.settled or narrowed.is_far or any(is_same_day(day, one) for day in held for one in said)
    ):
        return
    near = [fact for fact in narrowed.facts for day in _list_days(fact) if _is_near(day, said[0])]
    if near and held:
        yield claim, build_suspicion(claim, near[0], "wrong_date")


def _check_weekday(text: str, match: re.Match[str], days: Sequence[tuple[Fact, str]]) -> Iterator[Finding]:
    """A weekday on which nothing is that any result tells of."""
    claim, name = _build_claim(text, *match.span(), ()), match.group().lower()
    known = {_name_weekday(day) for _, day in days} - {""}
    texts = {str(fact.value).lower() for fact, _ in days}
    if claim.plain and known and name not in known and not any(name in one for one in texts):
        yield claim, build_suspicion(claim, days[0][0], "wrong_weekday")


def _build_claim(text: str, start: int, end: int, values: Sequence[object]) -> Claim:
    near, text = max(0, start - REACH), text[: end + REACH]
    first = max([near - 1, *(text.rfind(mark, near, start) for mark in (". ", "\n", "; ", "! ", "? "))]) + 1
    ends = [at for mark in (". ", "\n", "; ", "! ", "?") if (at := text.find(mark, end)) >= 0]
    sentence = text[first : min(ends, default=len(text)) + 1]
    said = tuple(str(value) for value in values) or ("",)
    quantity = Quantity("date", said[0], "", start, end, text[start:end], 0, said[1:])
    plain = not is_open(sentence) and not sentence.rstrip().endswith("?")
    line = text.rfind("\n", 0, start) + 1
    words = tuple(split_tokens(sentence))
    return Claim(quantity, sentence, words, exact=False, plain=plain, line_start=line, sentence_start=first)


def _list_days(fact: Fact) -> list[str]:
    return [str(held.value) for held in fact.quantities if held.kind == "date" and not str(held.value).startswith("--")]


def _is_near(day: str, other: str) -> bool:
    return abs((date.fromisoformat(day[:10]) - date.fromisoformat(other[:10])).days) <= _MAX_NEAR_DAYS


def _name_weekday(day: str) -> str:
    try:
        return WEEKDAYS[date.fromisoformat(day[:10]).weekday()]
    except ValueError:  # no year is given
        return ""
