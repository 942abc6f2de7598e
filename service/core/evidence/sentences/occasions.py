"""Find the days that a claim is about: `on Monday`, `May 3 and 4`, `from May 3 to 7`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.core.evidence.reading.dates import MONTHS, WEEKDAYS, build_iso_date, is_same_day, name_weekday
from service.core.evidence.sentences.claims import Claim

_WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAYS)})s?\b(?:,?\s(?:the\s)?(\d{{1,2}})(?:st|nd|rd|th)\b)?", re.IGNORECASE)
_NTH = re.compile(r"\bon the (\d{1,2})(?:st|nd|rd|th)\b(?! [a-z]+ (?:of|in)\b| day)", re.IGNORECASE)
_ANY_DAY = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)}|{'|'.join(MONTHS)}|to(?:day|morrow|night)|day)\b|\d(?:st|nd|rd|th)\b", re.IGNORECASE
)
_MONTH = "|".join(MONTHS)
_YEAR = re.compile(r"\b\d{4}\b")
_MONTH_OR_YEAR = re.compile(
    rf"\b(?:(?P<since>{_MONTH})(?: to | through | and |-|, ))?(?P<month>{_MONTH}),? (?:of )?(?P<of>\d{{4}})\b"
    r"|\b(?:in|of|by|for|from|to|until|and) (?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_TO = re.compile(
    r"\s*(?:morning|afternoon|evening|night)?\s*(?:to|through|thru|until|till|-|\u2013|\u2014)\s*(?:the\s)?\s*"
)
_AND = re.compile(r"\s*(?:,|,?\s*(?:and|or|&))\s*(?:the\s)?\s*")
_FURTHER_DAY = re.compile(
    r"\s*(?P<to>to|through|until|till|-|\u2013)\s*(?:the\s)?(?P<last>\d{1,2})(?:st|nd|rd|th)?\b(?![.,:]\d|\s?[%\u00b0])"
    r"|(?:\s*,)?\s*(?:(?:and|or|&)\s+)?(?:the\s)?(?P<next>\d{1,2})(?:st|nd|rd|th)\b"
)
"""Further days of the same month: `May 3 to 7`, `May 3rd, 4th and 5th`."""
_UP_TO_DAY = re.compile(
    r"\s*(?:\([^()]{0,20}\)\s*)?(?:(?!(?:and|with|but|while|then|before|after|followed|to)\b)[A-Za-z%/\u00b0\u00b2-]{1,20}\s){0,5}"
    r"(?:on|by|for|in|during|until)\s(?:(?:early|mid|late|around|about|the)[\s-])?"
)


class DaySpan(NamedTuple):
    """A span of days, or a single one, from `first` to `last`.

    Each is an ISO date, with or without a year (`---07`: without a month too), a month (`2025-02`), a year or a weekday.
    """

    first: str
    last: str

    def has(self, day: str) -> bool:
        """Whether an ISO date lies in the span.

        >>> DaySpan("monday", "wednesday").has("2024-01-09"), DaySpan("--12-30", "--01-02").has("2025-01-01")
        (True, True)
        """
        if self.first in WEEKDAYS or self.last in WEEKDAYS:
            return name_weekday(day) in _list_week(self.first, self.last)
        if self.first.startswith("---") or self.last.startswith("---"):
            return day[-2:] in (self.first[-2:], self.last[-2:])
        if len(self.first) < 8 and not self.first.startswith("--"):
            return self.first <= day[: len(self.first)] and day[: len(self.last)] <= self.last
        if self.first == self.last:
            return is_same_day(day, self.first)
        first, last, here = self.first[-5:], self.last[-5:], day[-5:]
        return first <= here <= last if first <= last else here >= first or here <= last


class _Mention(NamedTuple):
    start: int
    end: int
    spans: tuple[DaySpan, ...]


def find_days(claim: Claim) -> tuple[DaySpan, ...]:
    """Return the days that its sentence gives for a claim: those right after it, or the last before it; () if it names none.

    Days further on belong to something else: `between 2 and 9 m/s, with the strongest winds on Friday`.
    """
    found = list(_join_mentions(claim.sentence, list(_find_mentions(claim))))
    if not found or "respectively" in claim.sentence:
        return tuple(span for mention in found for span in mention.spans)
    end = claim.quantity.end - claim.sentence_start
    after = [mention for mention in found if mention.start >= end]
    before = [mention for mention in found if mention.start < end]
    if after and _UP_TO_DAY.fullmatch(claim.sentence[end : after[0].start]):
        return after[0].spans
    return before[-1].spans if before else ()


def is_in_course(claim: Claim) -> bool:
    """Whether earlier sentences on a claim's line mention a day."""
    return bool(_ANY_DAY.search(claim.context))


def _find_mentions(claim: Claim) -> Iterator[_Mention]:
    sentence, found = claim.sentence, list[_Mention]()
    for quantity in claim.dates:
        start, end = quantity.start - claim.sentence_start, quantity.end - claim.sentence_start
        found.append(_read_month(sentence, start, end, str(quantity.value)))
    for match in _WEEKDAY.finditer(sentence):
        day = f"---{match.group(2):0>2}" if match.group(2) else match.group(1).lower()
        found.append(_Mention(match.start(), match.end(), (DaySpan(day, day),)))
    for match in _NTH.finditer(sentence):
        day = f"---{match.group(1):0>2}"
        found.append(_Mention(match.start(), match.end(), (DaySpan(day, day),)))
    yield from sorted(found or _find_months_and_years(sentence))


def _find_months_and_years(sentence: str) -> Iterator[_Mention]:
    """Find months with a year, and years."""
    for match in _MONTH_OR_YEAR.finditer(sentence) if _YEAR.search(sentence) else ():
        first, last = (
            f"-{MONTHS.index(name.lower()) + 1:02}" if name else "" for name in match.group("since", "month")
        )
        year = match["of"] or match["year"]
        span = DaySpan(f"{year}{first or last}", f"{year}{last}")
        yield _Mention(match.start("year") if match["year"] else match.start(), match.end(), (span,))


def _read_month(sentence: str, start: int, end: int, day: str) -> _Mention:
    """Read a day and the further days of its month that follow it."""
    spans = [DaySpan(day, day)]
    while (further := _FURTHER_DAY.match(sentence, end)) and len(spans) < len(WEEKDAYS):
        other = build_iso_date(None, int(day[-5:-3]), int(further["last"] or further["next"]))
        if other is None:
            break
        spans.append(DaySpan(spans.pop().first, other) if further["to"] else DaySpan(other, other))
        end = further.end()
    return _Mention(start, end, tuple(spans))


def _join_mentions(sentence: str, mentions: Sequence[_Mention]) -> Iterator[_Mention]:
    """Join days that belong together: `Monday and Tuesday`, `Wednesday to Friday`, `Sunday, January 7`."""
    pending: _Mention | None = None
    for mention in mentions:
        between = sentence[pending.end : mention.start] if pending else ""
        if pending and _TO.fullmatch(between):
            span = DaySpan(pending.spans[-1].first, mention.spans[0].last)
            pending = _Mention(pending.start, mention.end, (*pending.spans[:-1], span))
        elif pending and _AND.fullmatch(between):
            pending = _Mention(pending.start, mention.end, (*pending.spans, *mention.spans))
        else:
            if pending:
                yield pending
            pending = mention
    if pending:
        yield pending


def _list_week(first: str, last: str) -> Sequence[str]:
    if first not in WEEKDAYS or last not in WEEKDAYS:
        return WEEKDAYS
    start, length = WEEKDAYS.index(first), (WEEKDAYS.index(last) - WEEKDAYS.index(first)) % 7 + 1
    return [WEEKDAYS[(start + n) % 7] for n in range(length)]
