"""Calls that a source contains twice: a repetition of a call that was read is not another call.

Two calls are the same if their tools and arguments are equal and their ids do not differ; a mention without arguments, where
another has them, is of the same call. Among calls found together, each call that was read accounts for one: two equal entries
repeat two equal calls, but beside a single such call one of them is new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.core.json.values import Contents
from service.core.trace import ToolCall


class PossibleCall(NamedTuple):
    """What looks like a call, and its pointer."""

    call: ToolCall
    path: str


_Key = tuple[str, int]
"""A call's name and the number of its arguments' content."""
_ANY_ARGUMENTS = -1
_NO_ARGUMENTS = -2


class KnownCalls:
    """The calls of a trace, and those found missing from it.

    >>> known = KnownCalls([ToolCall("a", "f", {"x": 1})])
    >>> twice = [PossibleCall(ToolCall(None, "f", {"x": 1.0}), "/0"), PossibleCall(ToolCall(None, "f", {"x": 1}), "/1")]
    >>> [found.path for found in known.drop_repeated(twice)], known.drop_repeated(twice[1:])
    (['/1'], [])
    >>> [found.path for found in known.drop_repeated(twice, by_id=True)]
    ['/0', '/1']
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._contents = Contents()
        self._waiting = [*calls]
        """Calls that are looked at once something is found that may repeat one."""
        self._by_id: defaultdict[str, set[_Key]] = defaultdict(set)
        self._counts: Counter[_Key] = Counter()
        self._without_id: Counter[_Key] = Counter()

    def add(self, *mention: ToolCall) -> None:
        """Add one call of the trace, given every mention of it in the source."""
        keys = {(name, _ANY_ARGUMENTS) for one in mention for name in (one.name, "")}
        keys |= {(one.name, self._number(one)) for one in mention}
        ids = {one.id for one in mention if one.id}
        for name in ids:
            self._by_id[name] |= keys
        self._counts.update(keys)
        if not ids:
            self._without_id.update(keys)

    def drop_repeated(self, found: Iterable[PossibleCall], *, by_id: bool = False) -> Sequence[PossibleCall]:
        """Return those of the calls found together that repeat no call.

        `by_id`: only one with a call's id may be its repetition.
        """
        used: Counter[_Key] = Counter()
        seen: set[tuple[str, _Key]] = set()
        new: list[PossibleCall] = []
        for one in found:
            while self._waiting:
                self.add(self._waiting.pop())
            call, number = one.call, self._number(one.call) if one.call.name else _NO_ARGUMENTS
            keys = [(call.name, number), (call.name, _NO_ARGUMENTS)]  # a known call with any of them is the same call
            keys = [(call.name, _ANY_ARGUMENTS)] if number == _NO_ARGUMENTS else keys
            if call.id and (call.id, keys[0]) in seen:
                continue
            seen.add((call.id or "", keys[0]))
            same = bool(self._by_id.get(call.id or "", set()).intersection(keys))
            used[keys[0]] += not same
            counts = self._without_id if call.id else self._counts
            accounted = not by_id and bool(call.name) and used[keys[0]] <= sum(counts[key] for key in keys)
            new += [] if same or accounted else [one]
        return new

    def take_new(self, found: Iterable[PossibleCall]) -> Sequence[PossibleCall]:
        """Return those of the calls found together that repeat no call; they are known from now on."""
        new = self.drop_repeated(found)
        for one in new:
            self.add(one.call)
        return new

    def _number(self, call: ToolCall) -> int:
        given = call.raw if call.raw is None or call.arguments is None else dict(call.arguments)
        return _NO_ARGUMENTS if given is None else self._contents.number(given)
