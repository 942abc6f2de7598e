"""Merge the messages of all spans into one dialogue: every model span repeats what was said before it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from service.core.trace import ToolCall
from service.intake.spans.agents import Agents
from service.intake.spans.messages import SpanMessage, read_output, read_span_input, spell_call
from service.intake.spans.otlp import Span
from service.intake.spans.selection import MessageCarrier, MissingReply

Moment = tuple[int, int]
"""A time in nanoseconds, and the span's order to break ties."""


class Dialogue(NamedTuple):
    """What was said, and ids under which a call was sent back to a model that differ from the id in its reply."""

    entries: Sequence[DialogueEntry]
    aliases: Mapping[str, str]


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


def read_dialogue(carriers: Iterable[MessageCarrier], missing: Iterable[MissingReply], agents: Agents) -> Dialogue:
    """Collect the input of each model span at its start and its output at its end, each once, in order of time.

    Raises InputError: a call without a name.
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
    entries += [
        DialogueEntry((one.span.end, one.span.order), one.span.path, SpanMessage(None, "", unread=one.unread))
        for one in missing
    ]
    return Dialogue(sorted(entries, key=lambda entry: entry.moment), memory.aliases)


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
            results = tuple(
                [
                    (self.aliases.get(call_id or "", call_id), result)
                    for call_id, result in message.results
                    if self._is_new(["result", call_id, result and [result.content, result.is_error]], here)
                ]
            )
            says = message.role is not None and (bool(message.text) or not (message.calls or message.results))
            new = says and self._is_new([message.role, message.text], here, closing=closing)
            said = new or bool(calls)
            if said or results or (closing and message.unread):
                yield SpanMessage(
                    message.role if said else None,
                    message.text if new else "",
                    calls,
                    results,
                    message.unread if said or closing else (),
                )

    def _is_new(self, key: object, here: Counter[str], *, closing: bool = False) -> bool:
        name = json.dumps(key, sort_keys=True)
        here[name] += 1
        if not closing and here[name] <= self._counts[name]:
            return False
        self._counts[name] += 1
        return True

    def _is_new_call(self, call: ToolCall, here: Counter[str], ids: set[str], *, closing: bool) -> bool:
        spelling = spell_call(call)
        if call.id is None:
            return self._is_new(["call", spelling], here, closing=closing)
        if closing:
            self._pending_ids[spelling][call.id] = None
        new = self._is_new(["call", call.id, spelling], here, closing=closing) and not self._is_partial_repeat(
            call, closing=closing
        )
        if not new:
            self._pending_ids[spelling].pop(call.id, None)
        return new and (closing or not self._record_alias(call.id, spelling, ids))

    def _is_partial_repeat(self, call: ToolCall, *, closing: bool) -> bool:
        """Whether a call is a repetition and one of the two mentions lacks the arguments."""
        captured = self._captured[call.id or "", call.name]
        repeated = bool(captured) if not call.captured else False in captured
        captured.add(call.captured)
        return repeated and not closing

    def _record_alias(self, call_id: str, spelling: str, ids: set[str]) -> bool:
        """Record a call made under another id; return whether it was.

        Some exporters write the item's id where the call's belongs.
        """
        original_id = next(iter(self._pending_ids[spelling]), None)
        if original_id is None or original_id in ids:
            return False
        del self._pending_ids[spelling][original_id]
        self.aliases[call_id] = original_id
        return True
