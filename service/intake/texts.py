"""Decode JSON that a log stores as text."""

from __future__ import annotations

import ast
import json
import re

from pydantic import JsonValue

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
