"""The leaves of JSON values: scalars with their pointers and keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import escape_token

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
    for leaf in _walk(value, pointer):
        found.append(leaf)
        if len(found) >= limit:
            break
    return found


def _walk(value: JsonValue, pointer: str) -> Iterator[Leaf]:
    stack: list[tuple[str, tuple[str, ...], JsonValue]] = [(pointer, (), value)]
    while stack:
        at, keys, here = stack.pop()
        if isinstance(here, dict):
            if at.count("/") < MAX_DEPTH:
                stack.extend([(f"{at}/{escape_token(k)}", (*keys, k), v) for k, v in reversed(here.items())])
        elif isinstance(here, list):
            if at.count("/") < MAX_DEPTH:
                stack.extend([(f"{at}/{n}", keys, here[n]) for n in range(len(here) - 1, -1, -1)])
        else:
            yield Leaf(at, keys, here)
