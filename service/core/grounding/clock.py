"""Find the day on which a trace says that it takes place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from service.core.grounding.facts import has_digit, split_plain
from service.core.grounding.fields import split_name
from service.core.grounding.reading.languages import split_words
from service.core.grounding.reading.moments import Day
from service.core.grounding.reading.values import find_values
from service.core.json.walk import list_leaves
from service.core.trace import Trace

_NOW = (
    *("current date", "current time", "current day", "current datetime", "today", "now", "date is", "time is", "it is"),
    *("heute", "hoy", "aujourd hui"),
)
_NOW_NAMES = split_words("currentdate currenttime currentdatetime now today")
_REACH = 40
_MAX_CHARS = 20_000
_MAX_LEAVES = 50


def find_reference_date(trace: Trace) -> date | None:
    """Find the day on which the trace says it takes place; None if it gives none or several.

    Sources are what user and system say (`The current time is 2024-05-15 15:00`), and fields like `current_date` in results.
    """
    stated: set[date] = set()
    for text in [message.text for message in trace.messages if message.role in ("user", "system")]:
        said = " ".join(split_plain(text[:_MAX_CHARS]))
        if not any(word in said for word in _NOW):
            continue
        for start, day in _list_days(text):
            words = f" {' '.join(split_plain(text[max(0, start - _REACH) : start].rsplit('. ', 1)[-1]))} "
            stated |= {day} if any(f" {word} " in words for word in _NOW) else set()
    for content in [step.result.content for step in trace.steps if step.result is not None]:
        for leaf in list_leaves(content, limit=_MAX_LEAVES):
            if isinstance(leaf.value, str) and "".join(split_name(leaf.key)) in _NOW_NAMES:
                stated |= {day for _, day in _list_days(leaf.value)}
    return stated.pop() if len(stated) == 1 else None


def _list_days(text: str) -> Iterator[tuple[int, date]]:
    for mention in find_values(text[:_MAX_CHARS]) if has_digit(text) else ():
        value = mention.readings[0].value
        if isinstance(value, Day) and value.date is not None:
            yield mention.start, value.date
