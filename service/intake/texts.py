"""Decode JSON that a log stores as text."""

from __future__ import annotations

import re

from pydantic import JsonValue

from service.core.json.parsing import UnreadableError, parse

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
