"""What is said of one argument: where it comes from, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.core.evidence.sources import Place

Origin = Literal["user", "result", "system", "schema", "derived", "open", "nowhere"]
"""`open`: not found, and nothing says that it should be (free text, a choice the model may make)."""

Status = Literal["located", "open", "nowhere", "contradicted"]


@dataclass(frozen=True, slots=True)
class Located:
    """One leaf of a call's arguments.

    `path` is its pointer in the trace. `source` is the pointer of what it was found in, `turn` that place's turn;
    `transform` says how one became the other, where they differ. `status` contradicted: the source says something else,
    in the words of `note`.
    """

    path: str
    status: Status
    origin: Origin
    source: str | None = None
    turn: int | None = None
    transform: str | None = None
    code: str | None = None
    note: str | None = None


def at_place(path: str, place: Place, transform: str | None = None) -> Located:
    """Found at a place; `transform`: derived from what stands there."""
    origin: Origin = "derived" if transform else place.origin
    return Located(path, "located", origin, place.pointer, place.turn, transform)


def in_schema(path: str, what: str) -> Located:
    """Given by the tool's schema: a default, a constant or one of its values."""
    return Located(path, "located", "schema", transform=what)


def left_open(path: str, why: str) -> Located:
    """Not found, which proves nothing."""
    return Located(path, "open", "open", note=why)


def from_nowhere(path: str, note: str) -> Located:
    """Not found, although it can only come from somewhere."""
    return Located(path, "nowhere", "nowhere", code="identifier_from_nowhere", note=note)


def against(path: str, place: Place, code: str, note: str) -> Located:
    """What was said there is something else."""
    return Located(path, "contradicted", place.origin, place.pointer, place.turn, None, code, note)
