"""Merge the messages of all spans into one dialogue: every model span repeats what was said before it.

A text that an agent was sent is the user's, or another agent's. Calls that stand in further sources and choices, in spans
around model spans, or in any other attribute or event, are calls of the trace, or unread.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.core.json.walk import list_leaves
from service.core.trace import ToolCall
from service.intake.spans.exports import Span, get_leaf
from service.intake.spans.messages import (
    SOURCES,
    CallResult,
    SpanMessage,
    UnreadPart,
    read_output,
    read_span_input,
)
from service.intake.spans.runs import PAYLOADS
from service.intake.spans.selection import (
    Enclosing,
    MessageCarrier,
    MissingReply,
    classify_span,
    is_copy,
    is_genai_span,
    read_agent,
)
from service.intake.unread_parts.repeated_calls import KnownCalls
from service.intake.unread_parts.suspects import clip, list_possible_calls, looks_like_call

_MIN_WORDS = 3
"""Words of a text that is known to be an agent's because the agent wrote it before: anybody may write a shorter one."""


class Agents:
    """The agents of a trace, and what they have written so far. If only one agent speaks, nobody is named."""

    def __init__(self, spans: Sequence[Span], speaking: Iterable[Span]) -> None:
        """`speaking`: the spans whose messages are read or, if there are none, those of tool runs."""
        self._names = {span.order: name for span in spans if (name := read_agent(span)) is not None}
        named = {span.id: self._names[span.order] for span in spans if span.id and span.order in self._names}
        self._around = Enclosing(spans, named)
        runs = [span for span in spans if self._names.get(span.order) not in (None, self._around.find(span))]
        self._runs = {span.order for span in runs}
        self._around_runs = Enclosing(spans, {span.id: span for span in runs if span.id})
        self.several = len({self._find(span) for span in speaking}) > 1
        self._writers: dict[str, str] = {}
        self._spoken: set[str | None] = set()
        self._begun: set[int] = set()

    def find(self, span: Span) -> str | None:
        """Return the name of a span's agent, if there are several."""
        return self._find(span) if self.several else None

    def _find(self, span: Span) -> str | None:
        return self._names.get(span.order) or self._around.find(span)

    def note(self, span: Span, messages: Sequence[SpanMessage]) -> None:
        """Note what the agent of a span replied."""
        agent = self.find(span)
        self._spoken.add(agent)
        for message in messages if self.several else ():
            arguments: list[JsonValue] = [dict(call.arguments or {}) for call in message.calls]
            for text in (message.text, *[leaf.value for one in arguments for leaf in list_leaves(one)]):
                if isinstance(text, str) and len(text.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS:
                    self._writers.setdefault(text.strip(), agent or "")

    def begin(self, span: Span) -> str | None:
        """Return the agent that a request's new texts are from, if the request begins a run within that agent's own run.

        None: nobody knows yet, and `find_writer` says whose a text is.
        """
        run = span if span.order in self._runs else self._around_runs.find(span)
        if not self.several or run is None or run.order in self._begun:
            return None
        self._begun.add(run.order)
        outer = self._around.find(run)
        return outer if outer in self._spoken else None

    def find_writer(self, span: Span, text: str) -> str | None:
        """Return the other agent that wrote a text before, word for word ("" if it has no name); None if it is the user's."""
        writer = self._writers.get(text.strip())
        return None if writer == (self.find(span) or "") else writer


Moment = tuple[int, int]
"""A time in nanoseconds, and the span's order to break ties."""


class DialogueEntry(NamedTuple):
    """A message, or the new part of one, and when it was said. `reply_of`: the span whose reply it was.

    `agent`: who wrote it or, of a user's or a system's, was sent it; `to`: whom an agent wrote to.
    """

    moment: Moment
    path: str
    message: SpanMessage
    reply_of: Span | None = None
    agent: str | None = None
    to: str | None = None


def read_dialogue(
    carriers: Iterable[MessageCarrier], missing: Iterable[MissingReply], agents: Agents
) -> tuple[Sequence[DialogueEntry], Mapping[str, str]]:
    """Collect the input of each model span at its start and its output at its end, each once, in order of time.

    Returns also the ids under which calls were sent back to a model that differ from the ids in its replies. Raises InputError: a
    call without a name.
    """
    memory = _Memory()
    moments: list[tuple[Moment, int, bool, MessageCarrier]] = []
    for number, carrier in enumerate(carriers):
        span = carrier.span
        moments.append(((span.start, span.order), number, False, carrier))
        moments.append(((span.end, span.order), number, True, carrier))
    entries = [
        entry
        for moment, _, closing, carrier in sorted(moments, key=lambda entry: entry[:3])
        for entry in _read_part(memory, moment, carrier, agents, closing=closing)
    ]
    for span, unread in missing:
        entries.append(DialogueEntry((span.end, span.order), span.path, SpanMessage(None, "", unread=unread)))
    return sorted(entries, key=lambda entry: entry.moment), memory.aliases


def _read_part(
    memory: _Memory, moment: Moment, carrier: MessageCarrier, agents: Agents, *, closing: bool
) -> Iterator[DialogueEntry]:
    span, agent = carrier.span, agents.find(carrier.span)
    messages = _join_calls(read_output(span, carrier.output) if closing else read_span_input(span, carrier.input))
    caller = None if closing else agents.begin(span)
    if closing:
        agents.note(span, messages)
    for part in memory.take_new(messages, closing=closing):
        writer = (caller or agents.find_writer(span, part.text)) if part.role == "user" else None
        if writer is None:
            yield DialogueEntry(moment, span.path, part, span if closing else None, agent)
        else:
            yield DialogueEntry(moment, span.path, part._replace(role="agent"), None, writer or None, agent)


def _join_calls(messages: Sequence[SpanMessage]) -> list[SpanMessage]:
    """Move calls of messages without text to the assistant message just before: some exporters write each apart."""
    joined: list[SpanMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        bare = message.role == "assistant" and message.calls and not message.text and not message.results
        if bare and last and last.role == "assistant" and not last.results:
            joined[-1] = last._replace(calls=last.calls + message.calls, unread=last.unread + message.unread)
        else:
            joined.append(message)
    return joined


class _Memory:
    """What was said so far: how often each text, and each call and result by id if it has one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._pending_ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """Ids of calls that a model made and that no model was sent yet, by name and arguments."""
        self._captured: defaultdict[tuple[str, str], set[bool]] = defaultdict(set)
        """Whether mentions of calls with this id and name had their arguments."""
        self.aliases: dict[str, str] = {}

    def take_new(self, messages: Sequence[SpanMessage], *, closing: bool) -> Iterator[SpanMessage]:
        """Iterate over the new parts of messages. `closing`: they are a reply, which is always new."""
        here: Counter[str] = Counter()
        ids = {call.id for message in messages for call in message.calls if call.id}
        for message in messages:
            calls = tuple([call for call in message.calls if self._is_new_call(call, here, ids, closing=closing)])
            results: list[CallResult] = []
            for call_id, result in message.results:
                if self._is_new(["result", call_id, result and [result.content, result.is_error]], here):
                    results.append((self.aliases.get(call_id or "", call_id), result))
            says = message.role is not None and (bool(message.text) or not (message.calls or message.results))
            new = says and self._is_new([message.role, message.text], here, closing=closing)
            said = new or bool(calls)
            if said or results or (closing and message.unread):
                role, text = message.role if said else None, message.text if new else ""
                yield SpanMessage(role, text, calls, tuple(results), message.unread if said or closing else ())

    def _is_new(self, key: object, here: Counter[str], *, closing: bool = False) -> bool:
        name = json.dumps(key, sort_keys=True)
        here[name] += 1
        if not closing and here[name] <= self._counts[name]:
            return False
        self._counts[name] += 1
        return True

    def _is_new_call(self, call: ToolCall, here: Counter[str], ids: set[str], *, closing: bool) -> bool:
        spelling = json.dumps([call.name, call.raw if call.arguments is None else call.arguments], sort_keys=True)
        if call.id is None:
            return self._is_new(["call", spelling], here, closing=closing)
        if closing:
            self._pending_ids[spelling][call.id] = None
        new = self._is_new(["call", call.id, spelling], here, closing=closing)
        if new:  # unless it is a repetition and one of the two mentions lacks the arguments
            captured = self._captured[call.id, call.name]
            new = closing or not (False in captured if call.captured else captured)
            captured.add(call.captured)
        if not new:
            self._pending_ids[spelling].pop(call.id, None)
        made_as = next(iter(self._pending_ids[spelling]), None)
        if not new or closing or made_as is None or made_as in ids:
            return new
        del self._pending_ids[spelling][made_as]  # some exporters write the item's id where the call's belongs
        self.aliases[call.id] = made_as
        return False


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
            elif isinstance(value, str) and value.startswith(('[{"', '{"')) and not value.rstrip().endswith(("]", "}")):
                yield "call", f"a call in {source}, which is cut off,"
                if not (_CALL_HINT.search(name) or _CALL_HINT.search(value)):
                    yield "text", f"{source}, which is cut off,"
