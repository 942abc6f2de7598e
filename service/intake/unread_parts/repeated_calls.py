"""Calls that a source contains twice: an exact repetition of a call that was read is not another call.

Two calls are the same if their tools and arguments are equal and their ids do not differ. Among calls found together,
each call that was read accounts for one: two equal entries repeat two equal calls, but beside a single such call one
of them is new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.values import Contents
from service.core.models.light import lazy
from service.core.trace import ToolCall

Key = tuple[Hashable, ...]


class PossibleCall(NamedTuple):
    """What looks like a call, and its pointer."""

    call: ToolCall
    path: str


class TraceCalls:
    """The calls of a trace.

    >>> known = TraceCalls([ToolCall("a", "f", {"x": 1})])
    >>> twice = [PossibleCall(ToolCall(None, "f", {"x": 1.0}), "/0"), PossibleCall(ToolCall("a", "f", {"x": 1}), "/1")]
    >>> [found.path for found in known.drop_repeated(twice)], [found.path for found in known.drop_repeated(twice[1:])]
    (['/1'], [])
    >>> [found.path for found in known.drop_repeated(twice, by_id=True)]
    ['/0']
    """

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self._contents = Contents()
        self._calls = tuple(calls)

    @lazy
    def _counts(self) -> Counter[Key]:
        return Counter([key for call in self._calls for key in self._list_keys(call)])

    @lazy
    def _named(self) -> frozenset[tuple[str | None, str]]:
        return frozenset((call.id, call.name) for call in self._calls if call.id)

    def drop_repeated(self, found: Iterable[PossibleCall], *, by_id: bool = False) -> Sequence[PossibleCall]:
        """Return those of the calls found together that repeat no call.

        `by_id`: only one with a call's id may be its repetition.
        """
        used: Counter[Key] = Counter()
        return [one for one in found if not self._take(used, one.call, by_id=by_id)]

    def has(self, call: ToolCall) -> bool:
        """Whether a call repeats one of them, be it only by its id and name."""
        return (call.id, call.name) in self._named or self._take(Counter(), call, by_id=False)

    def _take(self, used: Counter[Key], call: ToolCall, *, by_id: bool) -> bool:
        every, own = self._list_keys(call)
        keys = [own] if call.id and by_id else [own, (*every, None)] if call.id else [] if by_id else [every]
        key = next((key for key in keys if self._counts[key] > used[key]), None)
        if key is None or self._counts[every] <= used[every]:
            return False
        used.update({every, key})
        return True

    def _list_keys(self, call: ToolCall) -> tuple[Key, Key]:
        """Return the keys that identify a call, without its id and with it."""
        raw: JsonValue | Mapping[str, JsonValue] = call.raw if call.arguments is None else call.arguments
        every = (call.name, self._contents.number(raw))
        return every, (*every, call.id)


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

    def take_new(self, mentions: Iterable[PossibleCall]) -> Iterator[PossibleCall]:
        """Iterate over the unknown calls among those that one value mentions. Each is known from then on."""
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
        given = call.raw if call.raw is None or call.arguments is None else dict(call.arguments)
        return _NO_ARGUMENTS if given is None else self._contents.number(given)
