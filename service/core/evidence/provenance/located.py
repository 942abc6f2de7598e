"""Define the origin of one argument: where it comes from, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.core.evidence.provenance.places import SourcePlace

Origin = Literal["user", "result", "system", "schema", "assistant", "call", "derived", "open", "nowhere"]
"""`open`: not found, and it need not be (free text, a choice the model may make). `assistant`, `call`: found only in an
earlier text or call of the assistant's."""

Status = Literal["located", "open", "suspected", "nowhere", "contradicted"]
"""`nowhere` and `contradicted` are proved errors; a `suspected` one is for a judge or a human to decide."""

PROVED: frozenset[Status] = frozenset({"nowhere", "contradicted"})
"""Statuses that are wrong whatever a judge might say."""


@dataclass(frozen=True, slots=True)
class LeafOrigin:
    """The origin of one leaf of a call's arguments.

    `path` is its pointer in the trace. `source` is the pointer of the place it was found in and `turn` the turn of that
    place; `transform` says how one became the other, if they differ. If `status` is contradicted, the source says
    something else, which `note` explains.
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
    """Report a value found at a place. `transform`: how it derives from what is there."""
    origin: Origin = "derived" if transform else place.origin
    return LeafOrigin(path, "located", origin, place.pointer, place.turn, transform)


def locate_in_schema(path: str, what: str) -> LeafOrigin:
    """Report a value that the tool's schema gives. `what`: `default`, `const` or `enum`."""
    return LeafOrigin(path, "located", "schema", transform=what)


def leave_open(path: str, why: str) -> LeafOrigin:
    """Report a value that is not found, which proves nothing."""
    return LeafOrigin(path, "open", "open", note=why)


def suspect(path: str, note: str, place: SourcePlace | None = None) -> LeafOrigin:
    """Report a value that is likely wrong, but not provably. `place`: what speaks against it, or all that speaks for it."""
    origin: Origin = "open" if place is None else place.origin
    source, turn = (None, None) if place is None else (place.pointer, place.turn)
    return LeafOrigin(path, "suspected", origin, source, turn, None, "suspected_argument", note)


def locate_nowhere(path: str, note: str) -> LeafOrigin:
    """Report a value that is not found although it must come from somewhere."""
    return LeafOrigin(path, "nowhere", "nowhere", code="identifier_from_nowhere", note=note)


def contradict(path: str, place: SourcePlace, code: str, note: str) -> LeafOrigin:
    """Report a value that differs from what was said at a place."""
    return LeafOrigin(path, "contradicted", place.origin, place.pointer, place.turn, None, code, note)
