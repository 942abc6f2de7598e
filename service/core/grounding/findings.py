"""What code says against a text: a proof fails it, a suspicion leaves it open."""

from __future__ import annotations

from typing import NamedTuple


class TextFinding(NamedTuple):
    """A finding against a stretch of a text, from character `start` up to `end`."""

    code: str
    message: str
    start: int
    end: int
    proved: bool
    source: str = ""
    """The pointer of what speaks against it."""
