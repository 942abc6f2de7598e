"""JSON objects, and arrays of objects, with text around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.core.json.parsing import parse_or_none
from service.core.results.form import Form, Stretch

_START = re.compile(r'\{\s*+"|\[\s*+\{\s*+"')
"""The beginning of an object with a member, or of an array of such: `[1]` in prose is a footnote."""
_BRACKET_OR_STRING = re.compile(r'[{}\[\]]|"(?:[^"\\]++|\\.)*+"|"', re.DOTALL)


def find(text: str) -> Iterator[Stretch]:
    """Find every complete object or array. Stop at one that does not end: anything inside it is only a part.

    Each character is visited at most twice, however deep the nesting or however many brackets stay open.
    """
    position = 0
    while (start := _START.search(text, position)) is not None:
        end = _find_end(text, start.start())
        if end is None:
            return
        value = parse_or_none(text[start.start() : end])
        if value is not None:
            yield Stretch(start.start(), end, value)
        position = end


def _find_end(text: str, start: int) -> int | None:
    """Find the position after the bracket that closes the one at `start`; None where it is never closed."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, start):
        piece = match.group()
        if piece == '"':  # a string that does not end
            return None
        depth += (piece in "{[") - (piece in "}]")
        if depth == 0:
            return match.end()
    return None


FORM = Form("json_in_text", exact=True, rank=30, find=find)
