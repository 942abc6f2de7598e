"""Regular expressions that match in linear time: Rust's engine, by way of jsonschema-rs.

The syntax is the part of ECMA 262 that Rust's engine supports: no look-around, no back-references. `\\d` and `\\w` are
ASCII, `.` is any character but a line break, `^` and `$` are the ends of the whole text unless `(?m)` says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

MAX_PATTERN = 10_000
"""The longest accepted pattern, in characters."""

# Linear time is still slow when a counted repetition makes the automaton huge: `(?:a{1,100}){1,100}b` took 12 s on 100,000
# characters. So patterns that compile small may read long texts, and those that compile large only short ones. The worst
# pattern found took 0.05 s at the first size and 0.4 s at the second.
_SIZES = ((128 << 10, 100_000), (1 << 20, 2_000))

_FANCY = re.compile(r"\(\?(?:[=!>]|<[=!]|P=)|\\[1-9]|\\k[<{]")


@dataclass(frozen=True, slots=True)
class Regex:
    """A compiled pattern. It reads texts of up to `longest` characters: 100,000, or 2,000 if the pattern is very large."""

    longest: int
    _validator: Draft202012Validator

    def matches(self, text: str) -> bool:
        """Whether the pattern matches. A text with a lone surrogate is not valid Unicode and never matches."""
        try:
            return self._validator.is_valid(text)
        except UnicodeEncodeError:
            return False


@lru_cache(maxsize=1024)
def compile_regex(pattern: str, *, search: bool = False) -> Regex:
    r"""Compile a pattern that must match the whole text, or with `search` any part of it.

    Raises ValueError if the pattern is invalid, too long, or too large when compiled.

    >>> [compile_regex("a|b").matches(text) for text in ("a", "b", "ab", "a\n", "\na")]
    [True, True, False, False, False]
    >>> [compile_regex("a|b", search=True).matches(text) for text in ("xay", "", "A")]
    [True, False, False]
    >>> compile_regex("a(?=b)")
    Traceback (most recent call last):
    ValueError: 'a(?=b)' is not supported: look-around and back-references cannot be matched in linear time
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern of {len(pattern)} characters; at most {MAX_PATTERN} are taken")
    alone = _compile(pattern)  # compile it alone first: `a)|(b` must not break out of the group below
    if alone is None:
        raise ValueError(_explain_refusal(pattern))
    if search:
        return alone
    # The line break ends a comment at the end of a pattern with (?x); without (?x) the first form compiles.
    whole = _compile(f"^(?:{pattern})$") or _compile(f"^(?:{pattern}\n)$")
    if whole is None:
        raise ValueError(_explain_refusal(pattern))
    return whole


def _compile(pattern: str) -> Regex | None:
    for size, longest in _SIZES:
        try:
            options = RegexOptions(size_limit=size)
            return Regex(longest, Draft202012Validator({"pattern": pattern}, pattern_options=options))
        except (ValidationError, ValueError):
            continue
    return None


def _explain_refusal(pattern: str) -> str:
    shown = repr(pattern if len(pattern) <= 80 else f"{pattern[:79]}…")
    if _FANCY.search(pattern):
        return f"{shown} is not supported: look-around and back-references cannot be matched in linear time"
    return f"{shown} is not a regular expression of Rust's syntax, or one too large when compiled (1 MiB)"
