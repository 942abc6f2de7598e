"""Walk through values of any depth without recursion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.json.pointers import build_pointer
from service.core.json.values import SCALARS

Trail = tuple["Trail", str | int] | None
"""The path to a value, innermost part first: cheap to build for every value, and turned into a pointer only for a bad one."""


class Node(NamedTuple):
    """A value, the path to it and its depth: 0 for the outermost."""

    value: object
    trail: Trail
    depth: int

    @property
    def pointer(self) -> str:
        """The pointer of the value."""
        parts: list[str | int] = []
        trail = self.trail
        while trail is not None:
            trail, part = trail
            parts.append(part)
        return build_pointer(*reversed(parts))


def walk(value: object) -> Iterator[Node]:
    """Iterate over a value and all values inside it, in document order. A caller who stops at a depth also ends cycles.

    >>> [(node.pointer, node.depth) for node in walk({"a": [1, {}]})]
    [('', 0), ('/a', 1), ('/a/0', 2), ('/a/1', 2)]
    """
    waiting = [Node(value, None, 0)]
    while waiting:
        here = waiting.pop()
        yield here
        if isinstance(here.value, dict | list):
            container = cast("dict[str, object] | list[object]", here.value)
            inside = [*(container.items() if isinstance(container, dict) else enumerate(container))]
            waiting += [Node(inner, (here.trail, key), here.depth + 1) for key, inner in reversed(inside)]


_CONTAINERS = (dict, list)


def is_deeper_than(value: JsonValue, limit: int) -> bool:
    """Whether arrays and objects nest in more than `limit` levels; a scalar has none. Not recursive; stops at the limit.

    >>> is_deeper_than([[1]], 2), is_deeper_than([[1]], 1), is_deeper_than(5, 0)
    (False, True, False)
    """
    level: list[dict[str, JsonValue] | list[JsonValue]] = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(limit):
        if not level:
            return False
        deeper: list[dict[str, JsonValue] | list[JsonValue]] = []
        for outer in level:
            for inner in outer.values() if isinstance(outer, dict) else outer:
                if type(inner) not in SCALARS and isinstance(inner, _CONTAINERS):
                    deeper.append(inner)  # noqa: PERF401 (a comprehension costs more where nothing is deeper)
        level = deeper
    return bool(level)
