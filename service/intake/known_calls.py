"""Decide which calls mentioned in a log are among those already read: a log may mention a call several times.

Two mentions are one call if their ids, names and arguments agree; what a mention leaves out decides nothing. An id
alone is no identity, because many agents number their calls anew in every run. Calls without ids are counted: a value
that mentions one twice means two calls.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from service.core.json.values import Contents
from service.core.trace import ToolCall
from service.intake.spans.otlp import unflatten
from service.intake.texts import parse_text
from service.intake.unread_parts.repeated_calls import PossibleCall
from service.intake.unread_parts.suspects import guess_kind, list_calls


def list_mentions(value: JsonValue, path: str) -> Iterator[PossibleCall]:
    """Iterate over mentions of calls in JSON of unknown form. A name of "" and no arguments stand for what one leaves out.

    >>> [mention] = list_mentions([{"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}], "/x")
    >>> mention.path, mention.call.id, mention.call.name, mention.call.arguments
    ('/x/0/function', 'c', 'f', {'x': 1})
    """
    return (PossibleCall(_complete(call, here), place) for place, here, call in list_calls(value, path))


def list_packed_mentions(value: JsonValue, path: str) -> Iterator[PossibleCall]:
    """Iterate over mentions in a value that encodes JSON in texts and dotted keys, as attributes and metadata do.

    All get the pointer `path`.

    >>> attributes = {"a.calls": '[{"name": "f", "args": {}}]', "b.0.name": "g", "b.0.arguments": "{}"}
    >>> [(mention.path, mention.call.name) for mention in list_packed_mentions(attributes, "/x")]
    [('/x', 'f'), ('/x', 'g')]
    """
    return (PossibleCall(_complete(call, here), path) for _, here, call in list_calls(value, path, _unpack))


_PROSE = frozenset({"content", "text"})
"""Members that hold prose, whatever it looks like, unless it is a list of parts."""


def _unpack(name: str, value: JsonValue) -> JsonValue:
    if isinstance(value, str) and (name not in _PROSE or value.startswith("[{")):
        return _unpack("", spelt) if isinstance(spelt := parse_text(value), dict) else spelt
    return cast("JsonValue", unflatten(value)) if isinstance(value, dict) else value


def _complete(call: ToolCall, raw: Mapping[str, JsonValue]) -> ToolCall:
    """Name a call by a type like Vercel's `tool-weather` if nothing else does; else, without an id, by the type itself."""
    kind = raw.get("type")
    if not call.name and isinstance(kind, str):
        head, _, name = kind.partition("-")
        named = name if head == "tool" and guess_kind(name) != "call" else "" if call.id else kind
        call = replace(call, name=named)
    return replace(call, arguments=None) if call.raw is None else call


_Key = tuple[str, int]
"""A call's name and the number of its arguments' content."""
_ANY_ARGUMENTS = -1
_NO_ARGUMENTS = -2


class KnownCalls:
    """The calls of a trace, and those found missing from it."""

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._contents = Contents()
        self._by_id: defaultdict[str, set[_Key]] = defaultdict(set)
        self._counts: Counter[_Key] = Counter()
        self._without_id: Counter[_Key] = Counter()
        for call in calls:
            self.add(call)

    def add(self, *mention: ToolCall) -> None:
        """Add one call of the trace, given every mention of it in the source."""
        keys = {key for one in mention for key in self._list_keys(one)}
        ids = {one.id for one in mention if one.id}
        for name in ids:
            self._by_id[name] |= keys
        self._counts.update(keys)
        if not ids:
            self._without_id.update(keys)

    def list_unknown(self, mentions: Iterable[PossibleCall]) -> Iterator[PossibleCall]:
        """Iterate over the unknown calls among those that one value mentions. Each becomes known."""
        used: Counter[_Key] = Counter()
        seen: set[tuple[str, _Key]] = set()
        for one in mentions:
            call, keys = one.call, self._list_lookup_keys(one.call)
            if call.id and (call.id, keys[0]) in seen:
                continue
            seen.add((call.id or "", keys[0]))
            used[keys[0]] += not (by_id := self._by_id.get(call.id or "", set()).intersection(keys))
            counts = self._without_id if call.id else self._counts
            if not by_id and not (call.name and used[keys[0]] <= sum(counts[key] for key in keys)):
                self.add(call)
                yield one

    def _list_keys(self, call: ToolCall) -> list[_Key]:
        """List the keys under which a call is found."""
        return [(call.name, self._number(call)), (call.name, _ANY_ARGUMENTS), ("", _ANY_ARGUMENTS)]

    def _list_lookup_keys(self, call: ToolCall) -> list[_Key]:
        """List the keys to look a call up by: a known call with any of them is the same call."""
        number = self._number(call) if call.name else _NO_ARGUMENTS
        return (
            [(call.name, _ANY_ARGUMENTS)]
            if number == _NO_ARGUMENTS
            else [(call.name, number), (call.name, _NO_ARGUMENTS)]
        )

    def _number(self, call: ToolCall) -> int:
        given = call.raw if call.arguments is None else dict(call.arguments)
        return _NO_ARGUMENTS if given is None else self._contents.number(given)
