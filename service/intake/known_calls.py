"""Decide which calls mentioned in a log are among those already read: a log may mention a call several times.

Two mentions are one call if their ids, names and arguments agree; what a mention leaves out decides nothing. An id
alone is no identity, because many agents number their calls anew in every run. Calls without ids are counted: a value
that mentions one twice means two calls.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.json.contents import Contents
from service.core.json.members import JsonObject
from service.core.trace import ToolCall
from service.intake.spans.otlp import unflatten
from service.intake.texts import parse_text
from service.intake.unread_parts.suspects import FoundCall, guess_kind, list_calls


class CallMention(NamedTuple):
    """One mention of a call in a log; "" and None stand for what it leaves out."""

    path: str
    ids: frozenset[str]
    name: str
    arguments: JsonValue


def list_mentions(value: JsonValue, path: str) -> Iterator[CallMention]:
    """Iterate over mentions of calls in JSON of unknown form.

    >>> [mention] = list_mentions([{"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}], "/x")
    >>> mention.path, sorted(mention.ids), mention.name, mention.arguments
    ('/x/0/function', ['c'], 'f', {'x': 1})
    """
    return _list_mentions(list_calls(value, path))


def _list_mentions(calls: Iterable[FoundCall]) -> Iterator[CallMention]:
    for place, here, _, _, call in calls:
        arguments = call.raw if call.arguments is None else dict(call.arguments)
        arguments = (arguments.strip() or None) if isinstance(arguments, str) else arguments
        ids = frozenset({call.id} if call.id else ())
        yield CallMention(
            place, ids, call.name or _read_type(here, whole=not ids), None if call.raw is None else arguments
        )


def list_packed_mentions(value: JsonValue, path: str) -> Iterator[CallMention]:
    """Iterate over mentions in a value that encodes JSON in texts and dotted keys, as attributes and metadata do.

    All get the pointer `path`.

    >>> attributes = {"a.calls": '[{"name": "f", "args": {}}]', "b.0.name": "g", "b.0.arguments": "{}"}
    >>> [(mention.path, mention.name) for mention in list_packed_mentions(attributes, "/x")]
    [('/x', 'f'), ('/x', 'g')]
    """
    return (mention._replace(path=path) for mention in _list_mentions(list_calls(value, path, _unpack)))


_PROSE = frozenset({"content", "text"})
"""Members that hold prose, whatever it looks like, unless it is a list of parts."""


def _unpack(name: str, value: JsonValue) -> JsonValue:
    if isinstance(value, str) and (name not in _PROSE or value.startswith("[{")):
        return _unpack("", spelt) if isinstance(spelt := parse_text(value), dict) else spelt
    return cast("JsonValue", unflatten(value)) if isinstance(value, dict) else value


def _read_type(raw: JsonObject, *, whole: bool) -> str:
    """Return the tool's name from a type like Vercel's `tool-weather`; otherwise, if `whole`, the type itself."""
    kind = raw.get("type")
    if not isinstance(kind, str):
        return ""
    head, _, name = kind.partition("-")
    return name if head == "tool" and guess_kind(name) != "call" else kind if whole else ""


def build_mention(call: ToolCall, path: str = "") -> CallMention:
    """Build the mention of a call that was read."""
    arguments = call.raw if call.arguments is None else dict(call.arguments)
    return CallMention(path, frozenset({call.id} if call.id else ()), call.name, arguments)


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
            self.add(build_mention(call))

    def add(self, *mention: CallMention) -> None:
        """Add one call of the trace, given every mention of it in the source."""
        keys = {key for one in mention for key in self._list_keys(one)}
        ids = {name for one in mention for name in one.ids}
        for name in ids:
            self._by_id[name] |= keys
        self._counts.update(keys)
        if not ids:
            self._without_id.update(keys)

    def list_unknown(self, mention: Iterable[CallMention]) -> Iterator[CallMention]:
        """Iterate over the unknown calls among those that one value mentions. Each becomes known."""
        used: Counter[_Key] = Counter()
        seen: set[tuple[frozenset[str], _Key]] = set()
        for call in mention:
            lookup_keys = self._list_lookup_keys(call)
            if call.ids and (call.ids, lookup_keys[0]) in seen:
                continue
            seen.add((call.ids, lookup_keys[0]))
            if not self._has_id(call, lookup_keys) and not self._use(call, lookup_keys, used):
                self.add(call)
                yield call

    def _has_id(self, call: CallMention, lookup_keys: Sequence[_Key]) -> bool:
        return any(key in self._by_id[name] for name in call.ids if name in self._by_id for key in lookup_keys)

    def _use(self, call: CallMention, lookup_keys: Sequence[_Key], used: Counter[_Key]) -> bool:
        """Whether a call that no id identifies is known, and more often than this value has mentioned it so far."""
        counts = self._without_id if call.ids else self._counts
        used[lookup_keys[0]] += 1
        return bool(call.name) and used[lookup_keys[0]] <= sum(counts[key] for key in lookup_keys)

    def _list_keys(self, call: CallMention) -> list[_Key]:
        """List the keys under which a call is found."""
        number = _NO_ARGUMENTS if call.arguments is None else self._contents.number(call.arguments)
        return [(call.name, number), (call.name, _ANY_ARGUMENTS), ("", _ANY_ARGUMENTS)]

    def _list_lookup_keys(self, call: CallMention) -> list[_Key]:
        """List the keys to look a call up by: a known call with any of them is the same call."""
        if not call.name or call.arguments is None:
            return [(call.name, _ANY_ARGUMENTS)]
        return [(call.name, self._contents.number(call.arguments)), (call.name, _NO_ARGUMENTS)]
