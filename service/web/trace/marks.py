"""Stretches of text that speak of one another, and texts made safe to look at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""What shows nothing, turns the direction of what follows, or is no character: control, direction, tag, lone surrogate."""


class Mark(NamedTuple):
    """What a stretch of text has to do with others on the page. Everything here is made by us; nothing comes from a trace."""

    links: str
    """Numbers with spaces between: stretches that share one light up together. Empty: it has a sign alone."""
    anchor: str = ""
    """Its own id."""
    to: str = ""
    """The id of what it speaks of."""
    also: str = ""
    """A second id, by which the claims that speak of it find it."""
    number: int = 0
    """What is written beside it; 0: nothing."""
    sign: str = ""
    """Of a claim, or an argument, its verdict: `supported`, `contradicted`, `located`, `nowhere` and so on."""


class TextPiece(NamedTuple):
    """A stretch of text, with its mark if it has one."""

    text: str
    mark: Mark | None = None


class MarkedSpan(NamedTuple):
    """Characters `start` up to `end` of a text, and their mark."""

    start: int
    end: int
    mark: Mark


def spell_unseen(text: str) -> str:
    r"""The text with what cannot be seen, or would change how the rest is seen, written as escapes; tabs and line feeds stay.

    >>> spell_unseen("a\u202eb\x00\n\ud800")
    'a\\u202eb\\u0000\n\\ud800'
    """
    return _UNSEEN.sub(_spell, text)


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut_pieces(text: str, spans: Iterable[MarkedSpan]) -> tuple[TextPiece, ...]:
    """The text in pieces. Of spans that overlap the first stands; the mark of another has an empty piece.

    >>> mark = Mark("1")
    >>> [(one.text, one.mark is mark) for one in cut_pieces("a 1 b", [MarkedSpan(2, 3, mark)])]
    [('a ', False), ('1', True), (' b', False)]
    """
    return tuple(_iter_pieces(text, spans))


def _iter_pieces(text: str, spans: Iterable[MarkedSpan]) -> Iterator[TextPiece]:
    at = 0
    for start, end, mark in sorted(spans, key=_get_start):
        if at <= start < end <= len(text):
            if at < start:
                yield TextPiece(spell_unseen(text[at:start]))
            yield TextPiece(spell_unseen(text[start:end]), mark)
            at = end
        else:
            yield TextPiece("", mark)
    if at < len(text):
        yield TextPiece(spell_unseen(text[at:]))


def _get_start(span: MarkedSpan) -> int:
    return span.start
