"""Durations as command-line options write them."""

from __future__ import annotations

import re

import typer

UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0}
MAX_S = 36_500 * UNITS_S["d"]

LIFETIME_HELP = "How long the key is valid, such as 90d, 12h or 30m; a plain number means days."
"""The help text of options that take a key's lifetime."""


def read_duration(text: str) -> float:
    """Read a text such as 90d, 12h or 30m as seconds; a plain number means days. BadParameter otherwise, or over 100 years.

    >>> read_duration("90d"), read_duration("30m"), read_duration("2")
    (7776000.0, 1800.0, 172800.0)
    """
    match = re.fullmatch(r"([0-9]{1,9})([dhm]?)", text)
    seconds = int(match[1]) * UNITS_S[match[2] or "d"] if match else 0.0
    if not 0.0 < seconds <= MAX_S:
        raise typer.BadParameter(f"expected a duration such as 90d, 12h or 30m, at most 36500d, not {text!r}")
    return seconds


def render_duration(seconds: float) -> str:
    """Write seconds in the largest unit that leaves a whole number.

    >>> render_duration(172800.0), render_duration(5400.0)
    ('2d', '90m')
    """
    unit = next((unit for unit, size in UNITS_S.items() if seconds % size == 0), "m")
    return f"{seconds / UNITS_S[unit]:g}{unit}"
