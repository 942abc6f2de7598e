"""Decode JSON that a log stores as text or under dotted keys, and split texts in which tags mark thoughts, calls or results."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.core.json.parsing import UnreadableError, parse, parse_or_none

_FENCE = re.compile(r"\s*```(?:\w+)?[ \t]*\n(.*?)```\s*\Z", re.DOTALL)


def unfence(text: str) -> str:
    """Return what stands between the fences of a text that is one fenced block; any other text unchanged.

    >>> unfence("```json\\n[1]\\n```"), unfence("[1]")
    ('[1]\\n', '[1]')
    """
    fenced = _FENCE.match(text) if text.lstrip().startswith("```") else None
    return fenced[1] if fenced else text


def parse_text(value: JsonValue) -> JsonValue:
    """Parse a text that spells a JSON object, list or string; return any other value unchanged.

    >>> parse_text('{"a": 1}'), parse_text('"hi"'), parse_text("hi"), parse_text("5")
    ({'a': 1}, 'hi', 'hi', '5')
    """
    if value == "null":
        return None
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parse(value)
    except UnreadableError:
        return value


class Tree(dict[str, JsonValue]):
    """A tree of attributes built here, and therefore safe to extend."""


MAX_DEPTH = 64
"""Parts of a dotted key that become levels of a tree; the rest of a longer key stays one key."""


def unflatten(raw: JsonObject) -> JsonObject:
    """Build the tree that dotted keys spell. Values stay as they are: the keys of an argument may contain dots too.

    >>> unflatten({"tool.name": "f", "input.value": {"a.b": 1}})
    {'tool': {'name': 'f'}, 'input': {'value': {'a.b': 1}}}
    """
    if not any("." in key for key in raw):
        return raw
    tree = Tree()
    for key, value in raw.items():
        *parents, last = key.split(".", MAX_DEPTH)
        here: JsonValue = tree
        for part in parents:
            here = here.setdefault(part, Tree()) if isinstance(here, Tree) else None
        if isinstance(here, Tree):
            here.setdefault(last, value)
    return tree


MAX_LITERAL_CHARS = 100_000


def read_literal(text: str) -> JsonValue:
    """Return what a Python literal spells, as JSON; None if it spells nothing that JSON has.

    >>> read_literal("{'a': [1, None], 'b': (True,)}"), read_literal("{'a': b}"), read_literal("{1}")
    ({'a': [1, None], 'b': [True]}, None, None)
    >>> read_literal("[" * 999)
    """
    if len(text) > MAX_LITERAL_CHARS or "\\" in text:  # an unknown escape makes Python warn
        return None
    try:
        return parse_or_none(json.dumps(ast.literal_eval(text.strip()), allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


class Piece(NamedTuple):
    """The text between two tags of this name; None for text outside tags."""

    tag: str | None
    text: str
    closed: bool = True
    """Whether the tag is closed. An unclosed tag extends to the end of the text."""


def split_tags(text: str, tags: tuple[str, ...]) -> Iterator[Piece]:
    """Split a text at tags, in order and in linear time.

    >>> [piece[:2] for piece in split_tags("a<t>b</t>c<T>d", ("t",))]
    [(None, 'a'), ('t', 'b'), (None, 'c'), ('t', 'd')]
    """
    opening = re.compile(f"<({'|'.join(tags)})>", re.IGNORECASE)
    at = 0
    while at < len(text):
        start = opening.search(text, at)
        if start is None or start.start() > at:
            yield Piece(None, text[at : start.start() if start else None])
        if start is None:
            return
        tag = start[1].lower()
        end = re.compile(f"</{tag}>", re.IGNORECASE).search(text, start.end())
        yield Piece(tag, text[start.end() : end.start() if end else None], end is not None)
        at = end.end() if end else len(text)


def drop_thoughts(text: str) -> str:
    """Remove thoughts from a text; an unclosed thought extends to the end.

    >>> drop_thoughts("<think>Hm.</think>Yes."), drop_thoughts("Yes.<think>Or"), drop_thoughts("Yes.")
    ('Yes.', 'Yes.', 'Yes.')
    """
    pieces = list(split_tags(text, ("think",)))
    if all(piece.tag is None for piece in pieces):
        return text
    return "".join([piece.text for piece in pieces if piece.tag is None]).strip()
