"""The law of intake: every part of a source is read, or judged by what it could be.

A reader declares with `Members` which members of an object it reads; `note_unread_members` leaves all others to the
transcript, which judges them once everything is read (`suspects`): what could be a call, a result or a
reply, or says that one was lost, is unread; the rest is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.core.trace import UnreadKind
from service.intake.build import Transcript
from service.intake.unread_parts.leftovers import About, Rest
from service.intake.unread_parts.suspects import guess_kind

JsonObject = Mapping[str, Any]

MAX_QUOTED_NAME_CHARS = 60
"""Characters of a source's name that a reason quotes."""

_REFERENCE = re.compile(
    r"(?i:expected|gold|golden|reference|ground_?truth|few_?shot|example)(?i:s?)(?:$|[_A-Z-].*)", re.DOTALL
)
"""Members of a record that hold a reference: what should have been done, or what was done elsewhere. Calls in them
were not made in this trace.
"""


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one type of object in a source that its reader reads."""

    of: str
    """What the object is, for reasons: "a message"."""
    read: frozenset[str]
    about: About = "record"


def define_members(of: str, read: str, about: About = "record") -> Members:
    """Build `Members` from space-separated names."""
    return Members(of, frozenset(read.split()), about)


def note_unread_members(
    transcript: Transcript, raw: JsonObject, members: Members, path: str, *, silent: bool = False
) -> None:
    """Leave each member that is not read to the transcript. `silent`: the object is a reply in which nothing was said."""
    if members.read.issuperset(raw):
        return
    for name, value in raw.items():
        if name in members.read or value in (None, "", False, 0, [], {}):
            continue
        what, place = f"the member {clip(name)!r} of {members.of}", f"{path}/{escape_token(name)}"
        if path == "" and _REFERENCE.fullmatch(name):
            transcript.note_unread("other", place, what)
        else:
            transcript.leave(Rest(value, place, what, name, members.about, by_id=path != "", silent=silent))


def note_losses(transcript: Transcript, raw: JsonObject, path: str, but: Iterable[str]) -> None:
    """Leave all members except those in `but`, to find signs that something was lost; calls in them are found elsewhere."""
    for name, value in raw.items():
        if name not in but and value:
            what, place = f"the member {clip(name)!r}", f"{path}/{escape_token(name)}"
            transcript.leave(Rest(value, place, what, name, calls=False))


def note_unread_alternatives(
    transcript: Transcript, raw: JsonObject, names: Iterable[str], chosen: str, of: str, path: str = ""
) -> None:
    """Leave the alternatives to `chosen`: members that may stand for the same thing, of which only one is read."""
    for name in names:
        if name != chosen and raw.get(name):
            what = f"the member {name!r} of {of}, beside {chosen!r},"
            note_unread_value(transcript, raw[name], f"{path}/{name}", what, by_id=path != "")


def note_unread_typed_part(transcript: Transcript, part: JsonObject, of: str, path: str, *, idle: bool = False) -> None:
    """Report an unread part by its type and by the calls in it. `of`: what the part is, such as "a block".

    `idle`: apart from calls, the part carries nothing that is scored; attachments of a user are an example.
    """
    note_unread_of_kind(
        transcript, part, f"{of} of the type {clip(part['type'])}", path, kind=guess_kind(part["type"]), idle=idle
    )


def note_unread_of_kind(
    transcript: Transcript, value: JsonValue | JsonObject, what: str, path: str, *, kind: UnreadKind, idle: bool = False
) -> None:
    """Report an unread part whose type stands somewhere other than in `type`."""
    if kind == "call":
        transcript.note_unread(kind, path, what)
    else:
        shown = idle and kind == "text"
        transcript.leave(Rest(value, path, what, holds="other" if shown else kind, shown=shown))  # pyright: ignore[reportArgumentType] (JSON)


def note_unread_value(
    transcript: Transcript, value: Any, path: str, what: str, *, holds: UnreadKind = "other", by_id: bool = True
) -> None:
    """Leave a value of unknown form: what is found in it counts, or `holds` if nothing is."""
    transcript.leave(Rest(value, path, what, holds=holds, by_id=by_id))


def clip(name: str) -> str:
    """Shorten a source's name to what a reason quotes."""
    return name if len(name) <= MAX_QUOTED_NAME_CHARS else name[:MAX_QUOTED_NAME_CHARS] + "..."
