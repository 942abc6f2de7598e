"""Read records of any format: the union of all shapes, and one reader for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import inf
from typing import Annotated, Any, cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from service.core.json.members import JsonObject
from service.core.models.discovery import import_all
from service.core.models.validation import list_problems
from service.core.trace import Trace, UnreadablePart
from service.errors import InputError
from service.intake import formats
from service.intake.build import Record, Transcript
from service.intake.format import ByFormat, Format, Tools
from service.intake.unread_parts.suspects import clip
from service.intake.wrapping import read_wrapper

# Any: pydantic has checked `format`, which decides the shape that each reader gets.
_DECLARED = [entry for module in import_all(formats) for entry in vars(module).values() if isinstance(entry, Format)]
_ALL = sorted(_DECLARED, key=lambda entry: entry.name)
_BY_NAME: Mapping[str, Format] = {entry.name: entry for entry in _ALL}
FORMATS = tuple(_BY_NAME)
"""The names of all formats."""
_BY_SCORE = sorted(_ALL, key=lambda entry: -entry.score)


def list_formats() -> Sequence[Format]:
    """Return all formats by name."""
    return _ALL


GENERAL = 50
"""The score up to which a format is no more than messages, which others write too: it stands back where another fits."""


def list_guesses(record: JsonObject) -> list[Format]:
    """List the formats that recognise a record, the best score first."""
    return [entry for entry in _BY_SCORE if entry.recognise(record)]


def guess_format(record: JsonObject) -> str | None:
    """Guess a record's format from its members; None if they do not tell.

    Of several, it is the one of the best score, unless another reads what it would lose. A conversation of plain text
    without tools reads the same as `openai` and as `anthropic`; it is called `openai`.
    """
    guesses = list_guesses(record)
    special = [entry.name for entry in guesses if entry.score > GENERAL]
    if len(special) > 1:
        return min(special, key=lambda name: _count_lost(record, name))  # of equals the first, which has the best score
    return guesses[0].name if guesses else None


def _count_lost(record: JsonObject, name: str) -> float:
    try:
        return sum(part.kind != "other" for part in _read_as(record, name).unread)
    except (InputError, ValueError):
        return inf


def find_second_guess(record: TraceInput) -> str | None:
    """Return the best guess besides the format that a record was read in; None if it looks like no other."""
    names = [entry.name for entry in list_guesses(cast("JsonObject", record))]
    return next((name for name in names if name != record["format"]), None)


_SESSIONS = [(entry.name, entry.session) for entry in _ALL if entry.session is not None]
_SPLITS = [(entry.name, entry.split) for entry in _ALL if entry.split is not None]


def name_session(line: JsonObject) -> tuple[str, str] | None:
    """Return the format and the session that a line of a file belongs to; None if it is a record of its own.

    The session is "" where the line does not say: it is that of the lines around it.
    """
    return next(((name, session) for name, find in _SESSIONS if (session := find(line)) is not None), None)


def split_record(record: JsonObject) -> Sequence[tuple[str, JsonObject]] | None:
    """Return the records that a document holds, with their pointers and formats; None if it is one record itself."""
    for name, split in _SPLITS:
        inner = split(record)
        if inner is not None:
            return [(path, {"format": name, **one}) for path, one in inner]
    return None


def require_format(record: JsonObject, *, way_out: str | None = None) -> str:
    """Guess a record's format, or raise a ValueError that says what was looked for and what was found.

    `way_out`: advice to give instead of the list of what tells each format.
    """
    name = guess_format(record)
    if name is not None:
        return name
    if "role" in record:
        raise ValueError('this is one message, not a trace; put the list of messages into {"messages": [...]}')
    wrapping = find_wrapping(record)
    if wrapping is not None:
        raise ValueError(explain_wrapping(wrapping))
    keys = ", ".join([clip(key) for key in list(record)[:8]]) or "none"
    way_out = (
        way_out or f"formats are recognised as follows: {'; '.join(f'{entry.name} by {entry.hint}' for entry in _ALL)}"
    )
    raise ValueError(f"cannot tell the format of this trace by its members ({keys}); {way_out}")


def find_wrapping(record: Mapping[str, object]) -> str | None:
    """Return the member that holds the trace or request that should be the record itself; None if there is none."""
    for key, value in record.items():
        inner = cast("Mapping[str, object]", value if isinstance(value, dict) else {})
        if isinstance(inner.get("trace"), dict) or isinstance(inner.get("messages"), list):
            return key
    return None


def explain_wrapping(name: str) -> str:
    """Tell the sender to remove the wrapping."""
    return f"the trace or request stands below {clip(name)!r}; send it without that wrapping"


TraceInput = Annotated[Record, ByFormat(*[entry.build_shape() for entry in _ALL], guess=require_format)]
"""A trace in any format, chosen by `format` or else guessed from its members. An unknown name is an error that lists
the known ones.
"""


def read_trace(record: TraceInput, *, offered: Tools = None) -> Trace:
    """Read a validated record into a Trace; `raw` is the record itself.

    `offered`: the tools on offer, if the record names none.

    Raises InputError for what a shape cannot express (two tools of one name, a call of nothing), with JSON pointers
    relative to the record.
    """
    trace = _read(record, None)
    if trace.tools is None and offered is not None:  # what is a call in a text depends on them
        trace = _read(record, offered)
    return trace if trace.over else _note_silence(trace)


def _note_silence(trace: Trace) -> Trace:
    """Return the trace with the reply that it lacks: nothing of the assistant follows what the user said last."""
    last = len(trace.messages) - 1
    known = {part.kind for part in trace.unread if part.turn in (0, trace.turns)}
    path, after = (f"/messages/{last}", "the reply to the last message") if last >= 0 else ("", "a reply")
    what = f"{after}, which the record does not have, is not read"
    lost = [
        UnreadablePart("call", path, f"a call in {what}", trace.turns),
        UnreadablePart("text", path, what, trace.turns),
    ]
    return replace(trace, unread=(*trace.unread, *[part for part in lost if part.kind not in known]))


def _read(record: TraceInput, offered: Tools) -> Trace:
    out = Transcript(offered)
    reading = _BY_NAME[record["format"]].read_record(record, out)
    if isinstance(reading, Trace):
        return reading
    return read_wrapper(record, reading, out, partial(_read_any, offered=offered))


def _read_any(raw: JsonObject, offered: Tools) -> Trace:
    """Read a record that is not validated and names no format: in the format of the best score, so that work is bounded."""
    guesses = list_guesses(raw)
    if not guesses:
        raise InputError.at("", "the messages are in no known format")
    return _read_as(raw, guesses[0].name, offered)


def _read_as(raw: JsonObject, name: str, offered: Tools = None) -> Trace:
    """Read a record that is not validated in a format. Raises InputError: it does not fit."""
    try:
        return _read(_build_reader(name).validate_python({**raw, "format": name}), offered)
    except ValidationError as error:
        raise InputError(list_problems(error, dict(raw))) from None


@cache
def _build_reader(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_BY_NAME[name].build_shape())


def read_gold(record: TraceInput) -> dict[str, JsonValue] | None:
    """Return the gold that a benchmark's record carries, as plain data for `build_expectation`; None without any."""
    return _BY_NAME[record["format"]].gold(cast("JsonObject", record))
