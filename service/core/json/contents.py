"""Number JSON values by content, so that equal values can be found without comparing pairs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import cast


class Contents:
    """Gives equal values the same number, in order of appearance. Values may be of any depth; key order does not matter.

    Equality is typed: true is not 1, and 1 equals 1.0 unless `exact` tells them apart.

    >>> contents = Contents()
    >>> contents.number({"a": [1, None]}) == contents.number({"a": [1.0, None]})
    True
    >>> len({contents.number(value) for value in (1, True, "1", [], {}, [1])})
    6
    >>> exact = Contents(exact=True)
    >>> exact.number(1) == exact.number(1.0)
    False
    """

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: object) -> int:
        """Return the number of a value."""
        if not isinstance(value, Mapping | list | tuple):
            return self._number_scalar(value)
        done: list[int] = []
        waiting: list[tuple[object, bool]] = [(value, False)]
        while waiting:
            node, is_open = waiting.pop()
            if not isinstance(node, Mapping | list | tuple):
                done.append(self._number_scalar(node))
            elif is_open:
                size = len(cast("Sequence[object]", node))
                inner = done[len(done) - size :][::-1]
                del done[len(done) - size :]
                done.append(self._number_key(_make_key(cast("object", node), inner)))
            else:
                waiting.append((cast("object", node), True))
                waiting += [(item, False) for item in _list_items(cast("object", node))]
        return done[0]

    def _number_scalar(self, value: object) -> int:
        kind = type(value) if self._exact or not isinstance(value, int | float) else isinstance(value, bool)
        return self._number_key((kind, value))

    def _number_key(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _list_items(node: object) -> Sequence[object]:
    return (
        list(cast("Mapping[str, object]", node).values()) if isinstance(node, Mapping) else cast("list[object]", node)
    )


def _make_key(node: object, inner: Sequence[int]) -> Hashable:
    if isinstance(node, Mapping):
        return "object", tuple(sorted(zip(cast("Mapping[str, object]", node), inner, strict=True)))
    return "array", tuple(inner)
