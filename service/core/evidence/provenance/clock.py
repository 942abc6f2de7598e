"""Find the date on which a trace says it takes place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

from pydantic import JsonValue

from service.core.evidence.reading.quantities import find_quantities
from service.core.evidence.reading.words import flatten_text, split_name, split_tokens, split_words
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
)
_LABEL = re.compile(r"(?:^|\n)\W{0,4}(?:date|datetime|time|timestamp)\W{1,6}(?:\w{1,12},? )?$", re.IGNORECASE)
_NOW_KEYS = split_words("currentdate currenttime currentdatetime now today askedat")
_CLOCKS = (split_words("current date"), split_words("current time"), split_words("current datetime"))
_REACH = 40
_MAX_LEAVES = 50


def find_reference_date(trace: Trace) -> date | None:
    """Find the date on which the trace says it takes place; None if it gives none or several.

    Sources are texts (`The current time is 2024-05-15 15:00`), fields like `current_date` in results, whatever a clock
    tool returned, and `asked_at` beside the messages or in `metadata`.
    """
    stated = [*_iter_said(trace), *_iter_noted(trace.raw)]
    for step in trace.steps:
        stated += _iter_returned(step)
    found = {_read_full_date(day) for day in stated} - {None}
    return found.pop() if len(found) == 1 else None


def _iter_said(trace: Trace) -> Iterator[str]:
    for message in trace.messages:
        if message.role in ("user", "system"):
            for quantity in find_quantities(message.text):
                before = message.text[max(0, quantity.start - _REACH) : quantity.start]
                if quantity.kind == "date" and (
                    _says_now(before) or (message.role == "system" and _LABEL.search(before))
                ):
                    yield str(quantity.value)


def _iter_noted(raw: JsonValue) -> Iterator[str]:
    """Yield the dates that a trace record gives beside its messages."""
    beside = raw.get("metadata") if isinstance(raw, Mapping) else None
    for holder in (raw, beside):
        for key, value in holder.items() if isinstance(holder, Mapping) else ():
            if _names_now(key) and isinstance(value, str):
                yield from _list_days(value)


def _iter_returned(step: Step) -> Iterator[str]:
    if step.result is None:
        return
    name = set(split_name(step.call.name))
    is_clock = any(words <= name for words in _CLOCKS)
    for leaf in list_leaves(step.result.content, limit=_MAX_LEAVES):
        if isinstance(leaf.value, str) and (is_clock or _names_now(leaf.key)):
            yield from _list_days(leaf.value)


def _names_now(key: str) -> bool:
    return "".join(split_tokens(key)) in _NOW_KEYS


def _list_days(text: str) -> list[str]:
    return [str(quantity.value) for quantity in find_quantities(text) if quantity.kind == "date"]


def _says_now(before: str) -> bool:
    words = flatten_text(before.rsplit(". ", 1)[-1])
    return any(f" {word} " in words for word in _NOW)


def _read_full_date(day: str) -> date | None:
    return None if day.startswith("--") else date.fromisoformat(day)
