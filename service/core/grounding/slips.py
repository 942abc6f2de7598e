"""Slips of a digit or a character: what somebody writes who copies a value wrongly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator


def list_digits(text: str) -> str:
    """Return the digits of a number without leading zeros.

    >>> list_digits("$1,204.50"), list_digits("45.00"), list_digits("0.75")
    ('120450', '4500', '75')
    """
    return "".join([c for c in text if c.isdigit()]).lstrip("0")


def is_slip(one: str, other: str) -> bool:
    """Whether two texts differ by one character that is changed, left out or added, or by two neighbours that are swapped.

    >>> is_slip("2345", "2354"), is_slip("2345", "2395"), is_slip("2345", "235"), is_slip("2345", "2345")
    (True, True, True, False)
    """
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[same:], other[same:]
    return a != b and (a[1:] in (b, b[1:]) or a == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:]))


class SlipIndex:
    """Texts by what is left of them without one character: two that are a slip apart have such a part in common."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts: dict[str, list[str]] = defaultdict(list)
        for text in texts:
            for part in _iter_parts(text):
                self._parts[part].append(text)

    def find(self, text: str) -> list[str]:
        """Return the texts that are one slip away."""
        near = dict.fromkeys([one for part in _iter_parts(text) for one in self._parts.get(part, ())])
        return [one for one in near if is_slip(text, one)]


def _iter_parts(text: str) -> Iterator[str]:
    yield text
    yield from dict.fromkeys([text[:at] + text[at + 1 :] for at in range(len(text))])
