"""What is said of one argument: where it comes from, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.core.evidence.provenance.places import SourcePlace

Origin = Literal["user", "result", "system", "schema", "assistant", "call", "derived", "open", "nowhere"]
"""`open`: not found, and nothing says that it should be (free text, a choice the model may make). `assistant`, `call`: in
an earlier text or call of the assistant's alone."""

Status = Literal["located", "open", "suspected", "nowhere", "contradicted"]
"""`nowhere` and `contradicted` are proved; `suspected` is for a judge or a human to decide."""

PROVED: frozenset[Status] = frozenset({"nowhere", "contradicted"})
"""What is wrong whatever a judge might say."""


@dataclass(frozen=True, slots=True)
class LeafOrigin:
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


def locate_at(path: str, place: SourcePlace, transform: str | None = None) -> LeafOrigin:
    """Found at a place; `transform`: derived from what stands there."""
    origin: Origin = "derived" if transform else place.origin
    return LeafOrigin(path, "located", origin, place.pointer, place.turn, transform)


def locate_in_schema(path: str, what: str) -> LeafOrigin:
    """Given by the tool's schema: a default, a constant or one of its values."""
    return LeafOrigin(path, "located", "schema", transform=what)


def leave_open(path: str, why: str) -> LeafOrigin:
    """Not found, which proves nothing."""
    return LeafOrigin(path, "open", "open", note=why)


def suspect(path: str, note: str, place: SourcePlace | None = None) -> LeafOrigin:
    """Likely wrong, and not proved so. `place`: what speaks against it, or the only thing that speaks for it."""
    origin: Origin = "open" if place is None else place.origin
    source, turn = (None, None) if place is None else (place.pointer, place.turn)
    return LeafOrigin(path, "suspected", origin, source, turn, None, "suspected_argument", note)


def locate_nowhere(path: str, note: str) -> LeafOrigin:
    """Not found, although it can only come from somewhere."""
    return LeafOrigin(path, "nowhere", "nowhere", code="identifier_from_nowhere", note=note)


def contradict(path: str, place: SourcePlace, code: str, note: str) -> LeafOrigin:
    """What was said there is something else."""
    return LeafOrigin(path, "contradicted", place.origin, place.pointer, place.turn, None, code, note)
