"""Suspect the day of a moment that results give with another day: `on Monday at 14:05` of Saturday, 14:05."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from service.core.evidence.facts.entities import Holdings, list_days
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.verdicts import Saying, Utterances, suspect
from service.core.evidence.reading.dates import is_same_day, name_weekday
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.sentences.mentions import Clause, ClauseMention

_BETWEEN = re.compile(
    r"(?:,| \(| at| from| by| on| for| the| this| in| morning| afternoon| evening| night| )*", re.IGNORECASE
)
_MAX_APART = 24


def check_whole_moments(
    text: str, clauses: Sequence[Clause], holdings: Holdings, utterances: Utterances
) -> Iterator[Saying]:
    """Yield a suspicion for each day beside a time, if results have that time on other days only."""
    mentions = [mention for clause in clauses for mention in clause.mentions]
    known = holdings.once(check_whole_moments, lambda: _list_moments(holdings))
    for one, other in pairwise(mentions):
        day, time = (one, other.quantity) if one.is_day else (other, one.quantity)
        if time is None or time.kind != "time" or not day.is_day or not _is_beside(text, one, other):
            continue
        if utterances.has(time) or (day.quantity is not None and utterances.has(day.quantity)):
            continue
        if day.weekday and utterances.words(day.text):
            continue
        found = known.get(str(time.value)[:5], [])
        if found and all(fact is not None and not _falls_on(day, fact) for fact in found) and found[0] is not None:
            yield Saying(day.start, day.end, day.text, suspect(day.text, found[0], "wrong_weekday"))


def _is_beside(text: str, one: ClauseMention, other: ClauseMention) -> bool:
    return other.start - one.end <= _MAX_APART and _BETWEEN.fullmatch(text, one.end, other.start) is not None


def _list_moments(holdings: Holdings) -> dict[str, list[Fact | None]]:
    """Map each time, to the minute, to the facts that give its days; None among them where one has no day."""
    found: dict[str, list[Fact | None]] = {}
    for fact in holdings.facts:
        for time in {str(held.value)[:5] for held in fact.quantities if held.kind == "time"}:
            days = [fact] if list_days(fact) else [one for one in fact.record.facts if list_days(one)]
            found.setdefault(time, []).extend(days or [None])
    return found


def _falls_on(day: ClauseMention, fact: Fact) -> bool:
    said: Quantity | None = day.quantity
    if said is None:
        return any(name_weekday(one) == day.weekday for one in list_days(fact))
    return any(is_same_day(one, str(value)) for one in list_days(fact) for value in said.values)
