"""Marked spans of text that refer to each other, and texts made safe to display."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Characters that show nothing, change the direction of what follows, or are none: control, direction, tag, lone
surrogate.
"""


class Mark(NamedTuple):
    """How a span of text relates to others on the page. We make everything here; nothing comes from a trace."""

    links: str
    """Numbers separated by spaces: spans that share one light up together. Empty: the mark only has a sign."""
    anchor: str = ""
    """The span's own id."""
    to: str = ""
    """The id of what it refers to."""
    also: str = ""
    """A second id, which the values that come from it link to."""
    number: int = 0
    """The number shown beside it; 0: none."""
    sign: str = ""
    """The origin of a value, or `wrong` or `suspected`."""


class TextPiece(NamedTuple):
    """A piece of text, with its mark if it has one."""

    text: str
    mark: Mark | None = None


class MarkedSpan(NamedTuple):
    """Characters `start` up to `end` of a text, and their mark."""

    start: int
    end: int
    mark: Mark


def escape_invisible(text: str) -> str:
    r"""Escape what cannot be seen, or would change how the rest is seen; tabs and line feeds stay.

    >>> escape_invisible("a\u202eb\x00\n\ud800")
    'a\\u202eb\\u0000\n\\ud800'
    """
    return _INVISIBLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut_pieces(text: str, spans: Iterable[MarkedSpan]) -> tuple[TextPiece, ...]:
    """Cut the text into pieces. Of overlapping spans the first counts; the mark of another gets an empty piece.

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
                yield TextPiece(escape_invisible(text[at:start]))
            yield TextPiece(escape_invisible(text[start:end]), mark)
            at = end
        else:
            yield TextPiece("", mark)
    if at < len(text):
        yield TextPiece(escape_invisible(text[at:]))


def _get_start(span: MarkedSpan) -> int:
    return span.start
