"""Parse JSON inside a string: the arguments a model wrote, the text a tool returned.

No check of the request's body has seen such text, so the same limits apply here. Parsing is strict: `NaN`, `Infinity`, a
duplicate key or a number too large for a float makes the text unreadable, never silently something else.
"""

from __future__ import annotations

import math
import re
from typing import cast

import jiter
from pydantic import JsonValue

from service.core.json.walk import is_deeper_than, walk

MAX_DEPTH = 64
MAX_DIGITS = 64
MAX_REASON = 200

_LARGE = re.compile(r"[0-9](?:[0-9]{64}|[eE]\+?[0-9]{3})")
"""Without a match no number is too large. A match proves nothing: it may be inside a string."""


class UnreadableError(ValueError):
    """Text that is not acceptable JSON. The message says why, for people."""


def parse(text: str) -> JsonValue:
    """Parse the JSON value in `text`.

    Raises UnreadableError for bad syntax, a duplicate key, NaN or infinity, a lone surrogate, a NUL, more than 64 levels,
    an integer of more than 64 digits.
    """
    try:
        value: JsonValue = jiter.from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except UnicodeEncodeError:
        raise UnreadableError("not Unicode text: a lone surrogate") from None
    except ValueError as error:
        deep = str(error).startswith("recursion limit")
        reason = f"nested deeper than {MAX_DEPTH}" if deep else f"not valid JSON: {str(error)[:MAX_REASON]}"
        raise UnreadableError(reason) from None
    # These tests miss nothing, and nearly all text passes them, so the full check is rare.
    deep = (
        len(text) > 2 * MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH and is_deeper_than(value, MAX_DEPTH)
    )
    if deep or _LARGE.search(text) or "\\u0000" in text:
        _check(value)
    return value


def parse_or_none(text: str) -> JsonValue:
    """Parse the JSON value in `text`; return None if it is not acceptable JSON, or if it is null."""
    try:
        return parse(text)
    except UnreadableError:
        return None


def read_structure(text: str) -> JsonValue:
    """Parse a JSON object or array in `text`; return any other text unchanged.

    >>> read_structure('{"a": [1]}'), read_structure("12"), read_structure("[1")
    ({'a': [1]}, '12', '[1')
    """
    value = parse_or_none(text) if text.lstrip().startswith(("{", "[")) else None
    return text if value is None else value


def _check(value: JsonValue) -> None:
    for here, _, depth in walk(value):
        _check_scalar(here)
        if isinstance(here, dict | list) and depth == MAX_DEPTH:
            raise UnreadableError(f"nested deeper than {MAX_DEPTH}")
        for key in cast("dict[str, object]", here) if isinstance(here, dict) else ():
            _check_scalar(key)


def _check_scalar(value: object) -> None:
    if isinstance(value, str) and "\0" in value:
        raise UnreadableError("a NUL character in a string")
    if isinstance(value, float) and math.isinf(value):
        raise UnreadableError("a number too large for a float")
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise UnreadableError(f"an integer of more than {MAX_DIGITS} digits")
