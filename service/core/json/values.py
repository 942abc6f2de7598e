"""Typed equality of JSON values, numbers by content, and how messages show values and types."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from math import log10
from types import NoneType
from typing import cast

from pydantic import JsonValue

SCALARS = frozenset({str, int, float, bool, NoneType})
"""The types of values that contain no others."""
_NUMBERS = frozenset({int, float})
_SIMPLE = (NoneType, bool, (int, float), str)
_NAMES = (
    (NoneType, "null"),
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (list, "an array"),
    (dict, "an object"),
)
_LONGEST = 200
_HUGE = 10**40


def equals(a: JsonValue, b: JsonValue) -> bool:
    """Typed equality: booleans and strings are not numbers; an integer equals the same number with a decimal point.

    The order of keys does not matter, the order of items does. NaN equals nothing. Safe at any depth and size.

    >>> equals(1, 1.0), equals(True, 1), equals("1", 1), equals(None, False)
    (True, False, False, False)
    >>> equals({"a": [1, {}], "b": None}, {"b": None, "a": [1.0, {}]}), equals([1, 2], [2, 1]), equals([], {})
    (True, False, False)
    >>> equals(10**400, 1e308), equals(2**53 + 1, float(2**53))
    (False, False)
    """
    levels: list[TypedPairs] = [((a, b, type(a), type(b)),)]
    for pairs in levels:  # the list grows during the loop
        for left, right, of_left, of_right in pairs:
            if of_left in SCALARS and of_right in SCALARS:
                if left != right or (of_left is not of_right and not (of_left in _NUMBERS and of_right in _NUMBERS)):
                    return False
            elif type(left) is dict and type(right) is dict:
                if left.keys() != right.keys():
                    return False
                ones, others = left.values(), [*map(right.__getitem__, left)]
                levels.append(zip(ones, others, map(type, ones), map(type, others), strict=True))
            else:
                parts = _pair_parts(left, right)
                if parts is None:
                    return False
                levels.append(parts)
    return True


TypedPairs = Iterable[tuple[JsonValue, JsonValue, type, type]]
"""Pairs of values that must be equal for their containers to be equal, with their types."""


def _pair_parts(a: JsonValue, b: JsonValue) -> TypedPairs | None:
    """Return the pairs that must be equal for two values to be equal, subclasses included; None if they differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return ((dict(a), dict(b), dict, dict),)
    if isinstance(a, list) and isinstance(b, list):
        return zip(a, b, map(type, a), map(type, b), strict=True) if len(a) == len(b) else None
    return () if _equals_scalar(a, b) else None


def _equals_scalar(a: JsonValue, b: JsonValue) -> bool:
    """As `equals`, but also for subclasses of scalar types (such as a string enum). A container here differs in type."""
    if type(a) is type(b) and type(a) in SCALARS:
        return a == b
    for cls in _SIMPLE:
        if isinstance(a, cls):
            return isinstance(b, cls) and isinstance(a, bool) == isinstance(b, bool) and a == b
    return False


def name_type(value: object) -> str:
    """Return the JSON type of a value, with its article.

    >>> [name_type(value) for value in (None, True, 1, 1.0, "", [], {})]
    ['null', 'a boolean', 'an integer', 'a number', 'a string', 'an array', 'an object']
    """
    for cls, name in _NAMES:
        if isinstance(value, cls):
            return name
    return f"no JSON value but {type(value).__name__}"


def format_value(value: object, limit: int = 80) -> str:
    """Format a value as one line of JSON of at most `limit` characters (at most 200), cut with an ellipsis.

    The cost is bounded by the limit, whatever the size and depth of the value. Line breaks, control and direction
    characters and lone surrogates are escaped, so the line is safe in a log and encodes as UTF-8.

    >>> format_value({"a": [1, None, "x\\ny"]}), format_value("a" * 100, 10), format_value(10**400)
    ('{"a": [1, null, "x\\\\ny"]}', '"aaaaaaaa…', 'an integer of about 401 digits')
    """
    limit, text = max(1, min(limit, _LONGEST)), ""
    for piece in (_render_scalar(value),) if type(value) in SCALARS else _render_pieces(value):
        text += piece
        if len(text) > limit:
            return text[: limit - 1] + "…"
    return text


def _render_pieces(value: object) -> Iterator[str]:
    """Render a value piece by piece. Every level yields a bracket, so a caller who stops at a length also bounds the depth."""
    if isinstance(value, dict):
        yield from _render_members(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, (list, tuple)):
        yield from _render_items(value)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield _render_scalar(value)


def _render_members(value: dict[object, object]) -> Iterator[str]:
    before = "{"
    for key, item in value.items():
        yield f"{before}{_render_scalar(key)}: "
        yield from _render_pieces(item)
        before = ", "
    yield "}" if value else "{}"


def _render_items(value: list[object] | tuple[object, ...]) -> Iterator[str]:
    before = "["
    for item in value:
        yield before
        yield from _render_pieces(item)
        before = ", "
    yield "]" if value else "[]"


def _render_scalar(value: object) -> str:
    if isinstance(value, str):
        quoted = encode_basestring(value[: _LONGEST + 1])[: -1 if len(value) > _LONGEST + 1 else None]
        return (
            quoted if quoted.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)
        )
    if isinstance(value, int) and not -_HUGE < value < _HUGE:
        return f"an integer of about {int(abs(value).bit_length() * log10(2)) + 1} digits"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return name_type(value)


class Contents:
    """Gives equal values the same number, in order of appearance. Values may be of any depth; key order does not matter.

    Equality is typed: true is not 1, and 1 equals 1.0 unless `exact` tells them apart.

    >>> contents = Contents()
    >>> contents.number({"a": [1, None]}) == contents.number({"a": [1.0, None]})
    True
    >>> len({contents.number(value) for value in (1, True, "1", [], {}, [1])})
    6
    >>> exact = Contents(exact=True)
    >>> exact.number(1) == exact.number(1.0)
    False
    """

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: object) -> int:
        """Return the number of a value."""
        if not isinstance(value, Mapping | list | tuple):
            return self._number_scalar(value)
        done: list[int] = []
        waiting: list[tuple[object, bool]] = [(value, False)]
        while waiting:
            node, is_open = waiting.pop()
            if not isinstance(node, Mapping | list | tuple):
                done.append(self._number_scalar(node))
            elif is_open:
                size = len(cast("Sequence[object]", node))
                inner = done[len(done) - size :][::-1]
                del done[len(done) - size :]
                names = cast("Mapping[str, object]", node) if isinstance(node, Mapping) else None
                parts = inner if names is None else sorted(zip(names, inner, strict=True))
                done.append(self._number_key(("array" if names is None else "object", tuple(parts))))
            else:
                waiting.append((cast("object", node), True))
                inside = cast("Mapping[str, object] | Sequence[object]", node)
                members = inside.values() if isinstance(inside, Mapping) else inside
                waiting += [(item, False) for item in members]
        return done[0]

    def _number_scalar(self, value: object) -> int:
        kind = type(value) if self._exact or not isinstance(value, int | float) else isinstance(value, bool)
        return self._number_key((kind, value))

    def _number_key(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
