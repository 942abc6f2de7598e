"""The parser for every body: strict JSON in UTF-8, within limits, without silent changes.

Besides bad syntax it refuses a duplicate key, NaN and infinity, a number too large for a float (1e999) or one that would become
zero (1e-999), a NUL in a string or a key, and a lone surrogate. Integers stay exact at any size within the limit; a fraction
becomes the nearest float, as usual.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import cast

import jiter
from pydantic import JsonValue
from pydantic_core import from_json, to_json

from service.core.json.values import format_value, name_type
from service.core.json.walk import Node, is_deeper_than, walk
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


def parse_strictly(data: bytes, limits: Limits) -> JsonValue:
    """Parse `data` as JSON.

    Raises MalformedError for JSON that we do not accept and TooLargeError beyond a limit. The problem's path is a JSON pointer
    into the body, or "", with line and column (in bytes, from 1) in the message, if the text could not be parsed.

    >>> parse_strictly(b'{"a": [1, 10000000000000000000001, 0.5]}', Limits())
    {'a': [1, 10000000000000000000001, 0.5]}
    >>> parse_strictly(b'{"a": [1, 1e999]}', Limits())
    Traceback (most recent call last):
    service.errors.MalformedError: /a/1: a number too large for a float: 1e999
    """
    if len(data) > limits.max_bytes:
        raise TooLargeError.at("", f"{len(data)} bytes; at most {limits.max_bytes} are taken")
    if data.startswith(b"\xef\xbb\xbf"):
        raise MalformedError.at("", "starts with a byte order mark; JSON is sent without one (RFC 8259)")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise MalformedError.at("", "not UTF-8: it looks like UTF-16 or UTF-32")
    if not data.strip(_SPACE):
        raise MalformedError.at("", "empty; a JSON value is expected")
    value: JsonValue = _read(data, limits)
    # These quick tests miss nothing, and nearly all bodies pass them, so the slow walk, which finds the places, is rare.
    if _is_suspect(data, value, limits):
        _check_nodes(_read(data, limits, lossless=True), limits)
    return value


def _read(data: bytes, limits: Limits, *, lossless: bool = False) -> JsonValue:
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


def _is_suspect(data: bytes, value: JsonValue, limits: Limits) -> bool:
    """Whether anything may be wrong with a parsed body; `value` is what it says."""
    if data.count(b"[") + data.count(b"{") > limits.max_depth and is_deeper_than(value, limits.max_depth):
        return True
    if len(data) > limits.max_string or b"\\u0000" in data:
        return True
    # Every entry except the first of each container follows a comma, and takes at least one byte.
    if len(data) > limits.max_items < data.count(b",") + data.count(b"[") + data.count(b"{"):
        return True
    digits = data.translate(_DIGITS_AS_ZERO)
    if b"0" * min(_SAFE_DIGITS, limits.max_digits + 1) in digits:
        return True
    return _LARGE_EXPONENT_SHAPE.search(digits) is not None and _LARGE_EXPONENT.search(data) is not None


def check_value(value: object, limits: Limits) -> None:
    """Check a value that `parse_strictly` did not make. One that comes back from JSON as it was has nothing to be found in it.

    Raises MalformedError or TooLargeError with the pointer of what `parse_strictly` would not have accepted either.

    >>> check_value({"a": [float("nan")]}, Limits())
    Traceback (most recent call last):
    service.errors.MalformedError: /a/0: not a number: nan
    """
    try:
        data = to_json(value)
        plain: JsonValue = from_json(data)
        suspect = plain != value or _is_suspect(data, plain, limits)
    except ValueError:
        suspect = True
    if suspect:
        _check_nodes(value, limits)


def _check_nodes(value: object, limits: Limits) -> None:
    items = 0
    for node in walk(value):
        here = node.value
        if isinstance(here, dict | list):
            if node.depth >= limits.max_depth:
                raise TooLargeError.at(node.pointer, f"nested in more than {limits.max_depth} levels")
            for key in cast("dict[object, object]", here) if isinstance(here, dict) else ():
                _check_text(key, node, limits)
            items += len(cast("list[object]", here))
            if items > limits.max_items:
                most = f"at most {limits.max_items} entries of arrays and objects are taken"
                raise TooLargeError.at(node.pointer, f"too many entries up to the end of this: {most}")
        elif isinstance(here, str):
            _check_text(here, node, limits)
        elif not isinstance(here, bool | None):
            _check_number(here, node, limits)


def _check_text(text: object, node: Node, limits: Limits) -> None:
    if not isinstance(text, str):
        raise MalformedError.at(node.pointer, f"a key that is {name_type(text)}")
    if len(text) > limits.max_string:
        most = f"at most {limits.max_string} are taken"
        raise TooLargeError.at(node.pointer, f"a string of {len(text)} characters; {most}")
    if "\0" in text:
        raise MalformedError.at(node.pointer, "a NUL character in a string or a key")
    if not text.isascii() and _SURROGATE.search(text):
        raise MalformedError.at(node.pointer, "a lone surrogate in a string or a key")


_SURROGATE = re.compile("[\ud800-\udfff]")


def _check_number(here: object, node: Node, limits: Limits) -> None:
    if isinstance(here, int):
        if abs(here) >= 10**limits.max_digits:
            raise TooLargeError.at(node.pointer, f"an integer of more than {limits.max_digits} digits")
    elif isinstance(here, jiter.LosslessFloat | float):
        literal, value = str(here), float(str(here))
        if not math.isfinite(value):
            what = "not a number" if math.isnan(value) else "a number too large for a float"
            raise MalformedError.at(node.pointer, f"{what}: {literal[:60]}")
        if value == 0.0 and re.match(r"[-0.]*[1-9]", literal):
            raise MalformedError.at(node.pointer, f"a number too small for a float: {literal[:60]}")
    else:
        raise MalformedError.at(node.pointer, name_type(here))
