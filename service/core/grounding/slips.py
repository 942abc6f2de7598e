"""Slips of a digit or a character: what somebody writes who copies a value wrongly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator


def list_digits(text: str) -> str:
    """Return the digits of a number without leading zeros and without a fraction of zeros.

    >>> list_digits("$1,204.50"), list_digits("45.00"), list_digits("0.75")
    ('120450', '4500', '75')
    """
    return "".join([c for c in text if c.isdigit()]).lstrip("0")


def count_slips(one: str, other: str) -> int | None:
    """Return 1 where one character differs, two neighbours are swapped, or one is left out or added; 2 for two changed ones.

    >>> (
    ...     count_slips("2345", "2354"),
    ...     count_slips("2345", "2395"),
    ...     count_slips("2345", "235"),
    ...     count_slips("2345", "9999"),
    ... )
    (1, 1, 1, None)
    """
    if one == other or abs(len(one) - len(other)) > 1:
        return 0 if one == other else None
    if len(one) == len(other):
        apart = [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        if len(apart) == 1:
            return 1
        if len(apart) == 2:
            a, b = apart
            return 1 if b == a + 1 and one[a] == other[b] and one[b] == other[a] else 2
        return None
    short, long = sorted((one, other), key=len)
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return 1 if short[at:] == long[at + 1 :] else None


class SlipIndex:
    """Texts by what is left of them without one character: two that are a slip apart have such a part in common."""

    def __init__(self) -> None:
        self._known: set[tuple[str, bool]] = set()
        self._parts: dict[str, list[tuple[str, int]]] = defaultdict(list)

    def add(self, text: str, n: int, *, result: bool = False) -> None:
        """Add the number of what holds a text; of the same text once for results and once for all else."""
        if (text, result) not in self._known:
            self._known.add((text, result))
            for part in _iter_parts(text):
                self._parts[part].append((text, n))

    def find(self, text: str, *, same: bool = False) -> Iterator[tuple[str, int]]:
        """Yield the texts that are one slip away, with what holds them; `same`: the text itself, too."""
        near = dict.fromkeys([one for part in _iter_parts(text) for one in self._parts.get(part, ())])
        return (one for one in near if count_slips(text, one[0]) == 1 or (same and text == one[0]))


def _iter_parts(text: str) -> Iterator[str]:
    yield text
    yield from dict.fromkeys([text[:at] + text[at + 1 :] for at in range(len(text))])
