"""List the texts in a JSON value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from service.core.json.pointers import escape_token

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
