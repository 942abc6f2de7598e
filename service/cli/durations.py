"""Lengths of time as options give them."""

from __future__ import annotations

import re

import typer

UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0}
MOST_S = 36_500 * UNITS_S["d"]

AFTER = "Time after which it ends, such as 90d, 12h or 30m; a number alone is days."
"""What the help of an option says of such a time."""


def read_duration(text: str) -> float:
    """Seconds of a text such as 90d, 12h or 30m; a number alone is days. BadParameter for what is none, or over 100 years.

    >>> read_duration("90d"), read_duration("30m"), read_duration("2")
    (7776000.0, 1800.0, 172800.0)
    """
    found = re.fullmatch(r"([0-9]{1,9})([dhm]?)", text)
    seconds = int(found[1]) * UNITS_S[found[2] or "d"] if found else 0.0
    if not 0.0 < seconds <= MOST_S:
        raise typer.BadParameter(f"expected a time such as 90d, 12h or 30m, 36500d at most, not {text!r}")
    return seconds


def parse_duration(seconds: float) -> str:
    """Seconds in the largest unit that is whole.

    >>> parse_duration(172800.0), parse_duration(5400.0)
    ('2d', '90m')
    """
    unit = next((unit for unit, size in UNITS_S.items() if seconds % size == 0), "m")
    return f"{seconds / UNITS_S[unit]:g}{unit}"
