"""Calls that a source contains twice: an exact repetition of a call that was read is not another call.

Two calls are the same if their tools and arguments are equal and their ids do not differ. Among calls found together,
each call that was read accounts for one: two equal entries repeat two equal calls, but beside a single such call one
of them is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
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

    def drop_repeated(self, found: Iterable[PossibleCall], *, by_id: bool = False) -> Sequence[PossibleCall]:
        """Return those of the calls found together that repeat no call.

        `by_id`: only one with a call's id may be its repetition.
        """
        used: Counter[Key] = Counter()
        return [one for one in found if not self._take(used, one.call, by_id=by_id)]

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
