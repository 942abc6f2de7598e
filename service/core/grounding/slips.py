"""Slips of a digit or a character: what somebody writes who copies a value wrongly."""

from __future__ import annotations

from collections.abc import Iterator

_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def list_digits(text: str) -> str:
    """Return the digits of a number without leading zeros and without a fraction of zeros.

    >>> list_digits("$1,204.50"), list_digits("45.00"), list_digits("0.75")
    ('120450', '4500', '75')
    """
    return "".join([c for c in text if c.isdigit()]).lstrip("0")


def iter_slips(text: str) -> Iterator[str]:
    """Yield every text that is one slip away: a character changed, two neighbours swapped, one left out or added.

    >>> sorted(iter_slips("1"))[:4], "1203" in iter_slips("1230"), "ab1" in iter_slips("ab")
    (['', '0', '01', '10'], True, True)
    """
    known = "0123456789" if text.isdecimal() else _CHARACTERS
    for at in range(len(text) + 1):
        before, after = text[:at], text[at:]
        yield from [f"{before}{one}{after}" for one in known]
        if after:
            yield before + after[1:]
            yield from [f"{before}{one}{after[1:]}" for one in known if one != after[0]]
            if after[1:] and after[0] != after[1]:
                yield f"{before}{after[1]}{after[0]}{after[2:]}"
