"""Walk through values of any depth without recursion; list their leaves and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.json.pointers import build_pointer, escape_token
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


Scalar = str | int | float | bool | None

MAX_LEAVES = 20_000
"""The most leaves of one value that are listed."""
MAX_DEPTH = 64


class Leaf(NamedTuple):
    """A scalar with its pointer and the keys on the way to it (without array positions)."""

    pointer: str
    keys: tuple[str, ...]
    value: Scalar

    @property
    def key(self) -> str:
        """The nearest key; empty if there is none."""
        return self.keys[-1] if self.keys else ""


def list_leaves(value: JsonValue, pointer: str = "", limit: int = MAX_LEAVES) -> list[Leaf]:
    """List the leaves in document order, at most `limit` of them and no deeper than 64 levels.

    >>> [(leaf.pointer, leaf.keys, leaf.value) for leaf in list_leaves({"a": [1, {"b/c": None}]})]
    [('/a/0', ('a',), 1), ('/a/1/b~1c', ('a', 'b/c'), None)]
    """
    found: list[Leaf] = []
    stack: list[tuple[str, tuple[str, ...], JsonValue]] = [(pointer, (), value)]
    while stack and len(found) < limit:
        at, keys, here = stack.pop()
        if isinstance(here, dict):
            if at.count("/") < MAX_DEPTH:
                stack.extend([(f"{at}/{escape_token(k)}", (*keys, k), v) for k, v in reversed(here.items())])
        elif isinstance(here, list):
            if at.count("/") < MAX_DEPTH:
                stack.extend([(f"{at}/{n}", keys, here[n]) for n in range(len(here) - 1, -1, -1)])
        else:
            found.append(Leaf(at, keys, here))
    return found


MIN_KEY_CHARS = 17
"""Keys shorter than this are names, not texts."""


class PlacedText(NamedTuple):
    """A text and its pointer."""

    path: str
    text: str


def list_placed_texts(value: object, path: str = "") -> list[PlacedText]:
    """List the texts in a JSON value, including long keys, with their pointers below `path`, in document order.

    >>> list_placed_texts({"a": ["x", 1], "a key that is a sentence": None}, "/b")
    [PlacedText(path='/b/a key that is a sentence', text='a key that is a sentence'), PlacedText(path='/b/a/0', text='x')]
    """
    found: list[PlacedText] = []
    stack: list[tuple[str, object]] = [(path, value)]
    while stack:
        at, here = stack.pop()
        if type(here) is str:
            found.append(PlacedText(at, here))
        elif type(here) is list:
            items = cast("Sequence[object]", here)
            stack += [(f"{at}/{n}", items[n]) for n in range(len(items) - 1, -1, -1)]
        elif isinstance(here, Mapping):
            members = cast("Mapping[str, object]", here)
            stack += [(f"{at}/{escape_token(key)}", members[key]) for key in reversed([*members])]
            stack += [(f"{at}/{escape_token(key)}", key) for key in members if len(key) >= MIN_KEY_CHARS]
    return found
