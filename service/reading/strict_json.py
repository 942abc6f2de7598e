"""The parser for every body: strict JSON in UTF-8, within limits, without silent changes.

Besides bad syntax it refuses a duplicate key, NaN and infinity, a number too large for a float (1e999) or one that would become
zero (1e-999), a NUL in a string or a key, and a lone surrogate. Integers stay exact at any size within the limit; a fraction
becomes the nearest float, as usual.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import jiter
from pydantic import JsonValue

from service.core.json.pointers import build_pointer
from service.core.json.values import format_value
from service.core.schemas.tree import is_deeper_than
from service.errors import InputError, MalformedError, TooLargeError

_JITER_DEPTH = 200
_JITER_DIGITS = 4_300
_SPACE = b" \t\r\n"

_DIGITS_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
_SAFE_DIGITS = 65
"""A number with fewer consecutive digits than this, and fewer than three in its exponent, is well within a float's range."""
_LARGE_EXPONENT_SHAPE = re.compile(rb"0e[+-]?000")
_LARGE_EXPONENT = re.compile(rb"(?:^|[\s\[:,])-?[0-9][0-9.]*[eE][+-]?[0-9]{3}")
_FAILURE = re.compile(r"(.*) at line (\d+) column (\d+)", re.DOTALL)
_DUPLICATE = re.compile(r'Detected duplicate key "(.*)"', re.DOTALL)

Trail = tuple["Trail", str | int] | None
"""The path to a value, innermost part first: cheap to build for every value, and turned into a pointer only for a bad one."""
Node = JsonValue | jiter.LosslessFloat


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a body. ValueError for a depth or a number of digits beyond what the parser supports."""

    max_bytes: int = 4_000_000
    max_depth: int = 64
    """Nested levels of arrays and objects, 1 to 200; a scalar has none."""
    max_digits: int = 64
    """Digits of an integer, 1 to 4,300."""
    max_string: int = 1_000_000
    """Characters of one string or key."""
    max_items: int = 200_000
    """Entries of all arrays and objects in total."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= _JITER_DEPTH or not 1 <= self.max_digits <= _JITER_DIGITS:
            raise ValueError(f"max_depth is 1 to {_JITER_DEPTH}, max_digits 1 to {_JITER_DIGITS}")


def parse(data: bytes, limits: Limits) -> JsonValue:
    """Parse `data` as JSON.

    Raises MalformedError for JSON that we do not accept and TooLargeError beyond a limit. The problem's path is a JSON pointer
    into the body, or "", with line and column (in bytes, from 1) in the message, if the text could not be parsed.

    >>> parse(b'{"a": [1, 10000000000000000000001, 0.5]}', Limits())
    {'a': [1, 10000000000000000000001, 0.5]}
    >>> parse(b'{"a": [1, 1e999]}', Limits())
    Traceback (most recent call last):
    service.errors.MalformedError: /a/1: a number too large for a float: 1e999
    """
    if len(data) > limits.max_bytes:
        raise TooLargeError.at("", f"{len(data)} bytes; at most {limits.max_bytes} are taken")
    _check_encoding(data)
    value: JsonValue = _read(data, limits)
    # These quick tests miss nothing, and nearly all bodies pass them, so the slow walk, which finds the places, is rare.
    if _is_suspect(data, limits) or (_may_be_deep(data, limits) and is_deeper_than(value, limits.max_depth)):
        _Walk(limits).check(_read(data, limits, float_mode="lossless-float"))
    return value


def _check_encoding(data: bytes) -> None:
    if data.startswith(b"\xef\xbb\xbf"):
        raise MalformedError.at("", "starts with a byte order mark; JSON is sent without one (RFC 8259)")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise MalformedError.at("", "not UTF-8: it looks like UTF-16 or UTF-32")
    if not data.strip(_SPACE):
        raise MalformedError.at("", "empty; a JSON value is expected")


def _read(data: bytes, limits: Limits, *, float_mode: str = "float") -> JsonValue:
    lossless = float_mode == "lossless-float"
    try:
        return jiter.from_json(
            data,
            allow_inf_nan=False,
            catch_duplicate_keys=True,
            cache_mode="keys",
            float_mode="lossless-float" if lossless else "float",
        )
    except ValueError as error:
        raise _build_refusal(str(error), limits) from None


def _build_refusal(message: str, limits: Limits) -> InputError:
    """Translate jiter's error message, which may quote a key of any length."""
    match = _FAILURE.fullmatch(message)
    reason, where = (match[1], f"line {match[2]}, column {match[3]}") if match else (message, "unknown place")
    duplicate = _DUPLICATE.fullmatch(reason)
    if duplicate:
        return MalformedError.at("", f"{where}: the key {format_value(duplicate[1])} is given twice in one object")
    if reason.startswith("recursion limit"):
        return TooLargeError.at("", f"{where}: nested in more than {limits.max_depth} levels")
    if reason.startswith("number out of range"):
        return TooLargeError.at("", f"{where}: an integer of more than {limits.max_digits} digits")
    return MalformedError.at("", f"{where}: not JSON: {reason[:200]}")


def _is_suspect(data: bytes, limits: Limits) -> bool:
    """Whether anything but the depth may be wrong with a parsed body."""
    if len(data) > limits.max_string or b"\\u0000" in data or _may_be_many(data, limits):
        return True
    digits = data.translate(_DIGITS_AS_ZERO)
    if b"0" * min(_SAFE_DIGITS, limits.max_digits + 1) in digits:
        return True
    return _LARGE_EXPONENT_SHAPE.search(digits) is not None and _LARGE_EXPONENT.search(data) is not None


def _may_be_many(data: bytes, limits: Limits) -> bool:
    # Every entry except the first of each container follows a comma, and takes at least one byte.
    most = limits.max_items
    return len(data) > most and data.count(b",") + data.count(b"[") + data.count(b"{") > most


def _may_be_deep(data: bytes, limits: Limits) -> bool:
    return data.count(b"[") + data.count(b"{") > limits.max_depth


class _Walk:
    """Checks values in document order, without recursion."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._items = 0

    def check(self, value: Node) -> None:
        waiting: list[tuple[Node, Trail, int]] = [(value, None, 0)]
        while waiting:
            here, trail, depth = waiting.pop()
            if isinstance(here, dict | list):
                self._check_container(here, trail, depth + 1)
                waiting += [(inner, (trail, key), depth + 1) for key, inner in reversed([*_iterate_entries(here)])]
            elif isinstance(here, str):
                self._check_text(here, trail)
            else:
                self._check_number(here, trail)

    def _check_container(self, here: dict[str, JsonValue] | list[JsonValue], trail: Trail, depth: int) -> None:
        if depth > self._limits.max_depth:
            raise TooLargeError.at(_build_pointer(trail), f"nested in more than {self._limits.max_depth} levels")
        self._items += len(here)
        if self._items > self._limits.max_items:
            most = f"at most {self._limits.max_items} entries of arrays and objects are taken"
            raise TooLargeError.at(_build_pointer(trail), f"too many entries up to the end of this: {most}")
        for key in here if isinstance(here, dict) else ():
            self._check_text(key, trail)

    def _check_text(self, text: str, trail: Trail) -> None:
        if len(text) > self._limits.max_string:
            most = f"at most {self._limits.max_string} are taken"
            raise TooLargeError.at(_build_pointer(trail), f"a string of {len(text)} characters; {most}")
        if "\0" in text:
            raise MalformedError.at(_build_pointer(trail), "a NUL character in a string or a key")

    def _check_number(self, here: Node, trail: Trail) -> None:
        if isinstance(here, jiter.LosslessFloat):
            _check_float(bytes(here), trail)
        elif isinstance(here, int) and abs(here) >= 10**self._limits.max_digits:
            raise TooLargeError.at(_build_pointer(trail), f"an integer of more than {self._limits.max_digits} digits")


def _check_float(literal: bytes, trail: Trail) -> None:
    value = float(literal)
    spelt = literal[:60].decode("ascii", "replace")
    if math.isinf(value):
        raise MalformedError.at(_build_pointer(trail), f"a number too large for a float: {spelt}")
    if value == 0.0 and re.match(rb"[-0.]*[1-9]", literal):
        raise MalformedError.at(_build_pointer(trail), f"a number too small for a float: {spelt}")


def _iterate_entries(container: dict[str, JsonValue] | list[JsonValue]) -> Iterator[tuple[str | int, JsonValue]]:
    return iter(container.items()) if isinstance(container, dict) else enumerate(container)


def _build_pointer(trail: Trail) -> str:
    parts: list[str | int] = []
    while trail is not None:
        trail, part = trail
        parts.append(part)
    return build_pointer(*reversed(parts))
