"""JSON that a log may have as a text."""

from __future__ import annotations

import re

from pydantic import JsonValue

from service.core.json.parsing import UnreadableError, parse

_FENCE = re.compile(r"\s*```(?:\w+)?[ \t]*\n(.*?)```\s*\Z", re.DOTALL)


def unfence(text: str) -> str:
    """What stands between the fences of a text that consists of that; any other text as it is.

    >>> unfence("```json\\n[1]\\n```"), unfence("[1]")
    ('[1]\\n', '[1]')
    """
    fenced = _FENCE.match(text) if text.lstrip().startswith("```") else None
    return fenced[1] if fenced else text


def parse_text(value: JsonValue) -> JsonValue:
    """The JSON that a text spells, where that is an object, a list or a text; any other value is left as it is.

    >>> parse_text('{"a": 1}'), parse_text('"hi"'), parse_text("hi"), parse_text("5")
    ({'a': 1}, 'hi', 'hi', '5')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parse(value)
    except UnreadableError:
        return value
