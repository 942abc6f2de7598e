"""What a value in a text is: its place, and the ways in which it may be read."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from service.core.grounding.reading.moments import Day, Time

Kind = Literal["number", "day", "time", "code"]


class Reading(NamedTuple):
    """One way to read a mention.

    `value`: a number in the base unit of its dimension ("" where it has no unit), a day, a time, or a
    code in lower case without separators. `tolerance` is half of one in the last place written, `written` the number without its
    unit.
    """

    kind: Kind
    value: float | Day | Time | str
    dimension: str = ""
    tolerance: float = 0.0
    currency: str = ""
    written: float = 0.0

    @property
    def number(self) -> float:
        """The value of a number; 0 of anything else."""
        return self.value if isinstance(self.value, float) else 0.0

    @property
    def factor(self) -> float:
        """How many of the base unit one of its own is; 1 without a unit, and where that shows in no ratio (32 °F are 0 °C)."""
        return abs(self.number / self.written) if self.written and self.number else 1.0


class Mention(NamedTuple):
    """A value as it stands in a text, from character `start` up to `end`, likeliest reading first."""

    text: str
    start: int
    end: int
    readings: tuple[Reading, ...]
    hedged: bool = False
    """Whether it is told roughly, or as a bound."""
    ordinal: bool = False
    """Whether it is a rank or a day of some month (`3rd`), which need not stand anywhere."""

    @property
    def kind(self) -> Kind:
        """The kind of its likeliest reading."""
        return self.readings[0].kind

    @property
    def dimension(self) -> str:
        """The dimension of its likeliest reading: `money`, `share`, `time`, `length`, ..., or ""."""
        return self.readings[0].dimension


_DIGIT = re.compile(r"\d")


def has_digit(text: str) -> bool:
    """Whether a text has a digit."""
    return _DIGIT.search(text) is not None


def normalize_code(text: str) -> str:
    """Return a code in lower case without separators, and a version without its `v`.

    >>> normalize_code("1Z 999-AA1"), normalize_code("v3.11.7")
    ('1z999aa1', '3117')
    """
    code = "".join(filter(str.isalnum, text)).casefold()
    return code[1:] if code[:1] == "v" and code[1:].isdecimal() else code


def list_digits(text: str) -> str:
    """Return the digits of a number without leading zeros."""
    return "".join([c for c in text if c.isdigit()]).lstrip("0")


def is_slip(one: str, other: str) -> bool:
    """Whether two texts differ by one character that is changed, left out or added, or by two neighbours that are swapped.

    >>> is_slip("2345", "2354"), is_slip("2345", "2395"), is_slip("2345", "235"), is_slip("2345", "2345")
    (True, True, True, False)
    """
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[same:], other[same:]
    return a != b and (a[1:] in (b, b[1:]) or a == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:]))
