"""What a person needs to see of an item to side with the judge or with the labels."""

from __future__ import annotations

import json
from typing import NamedTuple

from pydantic import JsonValue

from service.calibrating.labels import LabelledItem
from service.core.trace import Trace
from service.errors import InputError
from service.request import read_request, traced

LONGEST = 1200
"""Characters of each part that a report shows."""


class Excerpt(NamedTuple):
    """The parts of an item, shortened in the middle where they are long; empty where it has none."""

    question: str
    """What the user asked last."""
    payload: str
    """What the tools returned, as JSON."""
    answer: str
    """What the model said, or the calls it made."""


def excerpt(item: LabelledItem) -> Excerpt:
    """The excerpt of an item, from its trace or from its payload and answer."""
    trace = _trace(item)
    if trace is None:
        return Excerpt(_asked(item.payload), shortened(_text(item.payload)), shortened(item.answer or ""))
    asked = [message.text for message in trace.messages if message.role == "user"]
    results: list[JsonValue] = [step.result.content for step in trace.steps if step.result is not None]
    called: JsonValue = [{"tool": step.call.name, "arguments": step.call.raw} for step in trace.steps]
    said = item.answer or trace.answer or (_text(called) if trace.steps else "")
    return Excerpt(
        shortened(asked[-1] if asked else ""),
        shortened(_text(results[0] if len(results) == 1 else results) if results else ""),
        shortened(said),
    )


def shortened(text: str, limit: int = LONGEST) -> str:
    """The text, or its two ends with the number of characters between them.

    >>> shortened("abcdefghij", 4)
    'ab [6 characters] ij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters] {text[-half:]}"


def _trace(item: LabelledItem) -> Trace | None:
    """Its trace; None where it has none that can be read: an excerpt is no place to refuse an item."""
    if item.trace is None:
        return None
    try:
        return traced(read_request({"trace": item.trace}))
    except InputError:
        return None


def _asked(payload: JsonValue) -> str:
    asked = payload.get("question") if isinstance(payload, dict) else None
    return shortened(asked) if isinstance(asked, str) else ""


def _text(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
