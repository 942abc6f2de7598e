"""The parts of an item that a person needs in order to side with the judge or with the labels."""

from __future__ import annotations

import json
from typing import NamedTuple

from pydantic import JsonValue

from service.calibration.labels import LabelledItem
from service.core.trace import Trace
from service.errors import InputError
from service.request import read_request, read_request_trace

MAX_PART_CHARS = 1200
"""The most characters of each part that a report shows."""


class Excerpt(NamedTuple):
    """The parts of an item, shortened in the middle where long; empty where it has none."""

    question: str
    """What the user asked last."""
    payload: str
    """What the tools returned, as JSON."""
    answer: str
    """What the model said, or the calls it made."""


def build_excerpt(item: LabelledItem) -> Excerpt:
    """Build the excerpt of an item from its trace, or from its payload and answer."""
    trace = _read_trace(item)
    if trace is None:
        return Excerpt(_read_question(item.payload), shorten(_render_text(item.payload)), shorten(item.answer or ""))
    questions = [message.text for message in trace.messages if message.role == "user"]
    results: list[JsonValue] = [step.result.content for step in trace.steps if step.result is not None]
    calls: JsonValue = [{"tool": step.call.name, "arguments": step.call.raw} for step in trace.steps]
    shown_answer = item.answer or trace.answer or (_render_text(calls) if trace.steps else "")
    return Excerpt(
        shorten(questions[-1] if questions else ""),
        shorten(_render_text(results[0] if len(results) == 1 else results) if results else ""),
        shorten(shown_answer),
    )


def shorten(text: str, limit: int = MAX_PART_CHARS) -> str:
    """Return the text, or its two ends with the number of characters left out between them.

    >>> shorten("abcdefghij", 4)
    'ab [6 characters] ij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters] {text[-half:]}"


def _read_trace(item: LabelledItem) -> Trace | None:
    """Read its trace; None where it has none that can be read, because an excerpt is no place to reject an item."""
    if item.trace is None:
        return None
    try:
        return read_request_trace(read_request({"trace": item.trace}))
    except InputError:
        return None


def _read_question(payload: JsonValue) -> str:
    question = payload.get("question") if isinstance(payload, dict) else None
    return shorten(question) if isinstance(question, str) else ""


def _render_text(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
