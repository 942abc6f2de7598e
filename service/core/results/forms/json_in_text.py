"""JSON objects, and arrays of objects, with text around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.core.json.parsing import parse_or_none
from service.core.results.form import Form, Stretch

_START = re.compile(r'\{\s*+"|\[\s*+\{\s*+"')
"""What begins an object with a member, or an array of such: `[1]` in prose is a footnote."""
_MARK = re.compile(r'[{}\[\]]|"(?:[^"\\]++|\\.)*+"|"', re.DOTALL)


def find(text: str) -> Iterator[Stretch]:
    """Every object or array that is whole. From one that does not end on nothing is read: what it holds is a part.

    Each character is passed twice at most, whatever is nested or left open.
    """
    at = 0
    while (start := _START.search(text, at)) is not None:
        end = _find_end(text, start.start())
        if end is None:
            return
        value = parse_or_none(text[start.start() : end])
        if value is not None:
            yield Stretch(start.start(), end, value)
        at = end


def _find_end(text: str, start: int) -> int | None:
    """Where the brackets that open at `start` are closed; None where they are not."""
    depth = 0
    for mark in _MARK.finditer(text, start):
        sign = mark.group()
        if sign == '"':  # a string that does not end
            return None
        depth += (sign in "{[") - (sign in "}]")
        if depth == 0:
            return mark.end()
    return None


FORM = Form("json_in_text", exact=True, rank=30, find=find)
