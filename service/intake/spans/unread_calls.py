"""Find calls in what spans hold besides the messages that are read. Each is a call of the trace, or unread.

They stand in further sources and choices, in spans around model spans, and in any other attribute or event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.core.json.parsing import UnreadableError, parse
from service.intake.spans.dialogue import DialogueEntry
from service.intake.spans.kinds import classify_span, is_copy, is_genai_span
from service.intake.spans.messages import SpanMessage, UnreadPart
from service.intake.spans.otlp import Span, get_leaf
from service.intake.spans.runs import PAYLOADS
from service.intake.spans.sources import SOURCES
from service.intake.unread_parts.repeated_calls import KnownCalls
from service.intake.unread_parts.suspects import clip, list_possible_calls, looks_like_call

_MAX_LEVELS = 3
"""Levels of attributes that only group others, as in `gen_ai.input.messages`."""
_CALL_HINT = re.compile(
    r"(?:^|[\"'])(?:tool_?calls?|tool_?use|function_?call|arguments|args)(?:[\"']|$)", re.IGNORECASE
)
"""Matches what has calls or is part of one, by name or in truncated JSON."""


def list_unread_calls(spans: Sequence[Span], known: KnownCalls, read_orders: set[int]) -> Iterator[DialogueEntry]:
    """Iterate over possible calls that are not read.

    `read_orders`: the order of each span whose messages are read, or should be.
    """
    for span in spans:
        if is_copy(span):
            continue
        unread: list[UnreadPart] = [
            ("call", f"a call of {clip(call.name)!r} in the span {clip(span.name)!r}")
            for value in _list_values(span)
            for call, _ in known.take_new(list_possible_calls(value, span.path, packed=True))
        ]
        unread += _list_truncated(span) if span.order in read_orders else []
        if span.dropped and is_genai_span(span):
            what = f"what the span {clip(span.name)!r} lost ({span.dropped} attributes or events were dropped)"
            lost: list[UnreadPart] = [("call", f"a call in {what}"), ("text", what)]
            unread += lost
        if unread:
            yield DialogueEntry((span.end, span.order), span.path, SpanMessage(None, "", unread=tuple(unread)))


def _list_values(span: Span) -> Iterator[JsonValue]:
    """Iterate over attributes and events that may mention calls, without a tool's input and output."""
    is_tool = classify_span(span) == "tool"
    for path, value in _list_attributes(span.attributes, ""):
        if not (is_tool and path in PAYLOADS):
            yield value
    for event in () if is_tool else span.events:
        of_tool = {"role": "tool"} if event.name == "gen_ai.tool.message" else {}
        yield {**of_tool, **event.attributes} if of_tool else {event.name: dict(event.attributes)}


def _list_attributes(raw: JsonObject, above: str, level: int = 1) -> Iterator[tuple[str, JsonValue]]:
    for name, value in raw.items():
        path = f"{above}{name}"
        inner = value if isinstance(value, dict) and level < _MAX_LEVELS and path not in PAYLOADS else None
        if inner and not looks_like_call(inner) and not any(map(str.isdecimal, inner)):
            yield from _list_attributes(inner, f"{path}.", level + 1)
        else:
            yield path, value


def _list_truncated(span: Span) -> Iterator[UnreadPart]:
    """Iterate over message sources that an exporter's size limit truncated where they mentioned calls."""
    for source in SOURCES:
        pending = [("", get_leaf(span, source) if source in ("input", "output") else span.get(source))]
        while pending:
            name, value = pending.pop()
            if isinstance(value, dict):
                pending += value.items()
            elif isinstance(value, str) and _is_truncated(value):
                yield "call", f"a call in {source}, which is cut off,"
                if not (_CALL_HINT.search(name) or _CALL_HINT.search(value)):
                    yield "text", f"{source}, which is cut off,"


def _is_truncated(text: str) -> bool:
    if not text.startswith(('[{"', '{"')) or text.rstrip().endswith(("]", "}")):
        return False
    try:
        parse(text)
    except UnreadableError:
        return True
    return False
