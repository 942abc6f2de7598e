"""Find the day on which a trace says that it takes place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

from pydantic import JsonValue

from service.core.grounding.facts import split_plain
from service.core.grounding.fields import split_name
from service.core.grounding.reading.languages import split_words
from service.core.grounding.reading.moments import Day
from service.core.grounding.reading.values import find_values
from service.core.json.leaves import list_leaves
from service.core.trace import Step, Trace

_NOW = (
    "current date",
    "current time",
    "current day",
    "current datetime",
    "today",
    "now",
    "date is",
    "time is",
    "it is",
    "heute",
    "hoy",
    "aujourd hui",
)
_LABEL = re.compile(r"(?:^|\n)\W{0,4}(?:date|datetime|time|timestamp)\W{1,6}(?:\w{1,12},? )?$", re.IGNORECASE)
_NOW_NAMES = split_words("currentdate currenttime currentdatetime now today askedat")
_CLOCKS = (frozenset({"current", "date"}), frozenset({"current", "time"}), frozenset({"current", "datetime"}))
_REACH = 40
_MAX_LEAVES = 50


def find_reference_date(trace: Trace) -> date | None:
    """Find the day on which the trace says it takes place; None if it gives none or several.

    Sources are texts (`The current time is 2024-05-15 15:00`), fields like `current_date` in results, whatever a clock tool
    returned, and `asked_at` beside the messages or in `metadata`.
    """
    stated = {
        *_iter_said(trace),
        *_iter_noted(trace.raw),
        *[day for step in trace.steps for day in _iter_returned(step)],
    }
    return stated.pop() if len(stated) == 1 else None


def _list_days(text: str) -> Iterator[tuple[int, date]]:
    for mention in find_values(text[:20_000]) if any(map(str.isdecimal, text)) else ():
        value = mention.readings[0].value
        if isinstance(value, Day) and value.date is not None:
            yield mention.start, value.date


def _iter_said(trace: Trace) -> Iterator[date]:
    for message in trace.messages:
        if message.role in ("user", "system"):
            for start, day in _list_days(message.text):
                before = message.text[max(0, start - _REACH) : start]
                if _says_now(before) or (message.role == "system" and _LABEL.search(before)):
                    yield day


def _iter_noted(raw: JsonValue) -> Iterator[date]:
    """Yield the days that a trace record gives beside its messages."""
    beside = raw.get("metadata") if isinstance(raw, Mapping) else None
    for holder in (raw, beside):
        for key, value in holder.items() if isinstance(holder, Mapping) else ():
            if _names_now(key) and isinstance(value, str):
                yield from (day for _, day in _list_days(value))


def _iter_returned(step: Step) -> Iterator[date]:
    name = set(split_name(step.call.name))
    is_clock = any(words <= name for words in _CLOCKS)
    for leaf in list_leaves(step.result.content, limit=_MAX_LEAVES) if step.result is not None else ():
        if isinstance(leaf.value, str) and (is_clock or _names_now(leaf.key)):
            yield from (day for _, day in _list_days(leaf.value))


def _names_now(key: str) -> bool:
    return "".join(split_name(key)) in _NOW_NAMES


def _says_now(before: str) -> bool:
    words = f" {' '.join(split_plain(before.rsplit('. ', 1)[-1]))} "
    return any(f" {word} " in words for word in _NOW)
