"""Split texts in which tags mark thoughts, calls or results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


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
