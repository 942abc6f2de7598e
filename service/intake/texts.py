"""JSON that a log may have as a text."""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.text import UnreadableError, parse


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
