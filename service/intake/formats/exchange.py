"""A request and its response as a program logs them, for any provider: `{"request": {...}, "response": {...}}`.

The request may be the record itself: `{"messages": [...], "response": {...}}`. Also read: a line of a batch's results,
which has the response alone (OpenAI's `response.body`, Anthropic's `result.message`), and Bedrock's invocation log
(`input.inputBodyJson`, `output.outputBodyJson`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NotRequired, cast

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_object
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.formats.litellm import LITELLM_MEMBERS
from service.intake.shapes import OPEN, Loose
from service.intake.unread_parts.members import define_members, note_unread_members, note_unread_value
from service.intake.wrapping import Exchange, WrapperContents


@with_config(OPEN)
class ExchangeTrace(TypedDict):
    """The bodies of a request and its response, or of a response alone."""

    format: Literal["exchange"]
    id: NotRequired[str | None]
    sample: NotRequired[int | None]
    request: NotRequired[Loose]
    response: NotRequired[Loose]
    result: NotRequired[Loose]
    input: NotRequired[Loose]
    output: NotRequired[Loose]


RECORD = define_members(
    "the trace",
    "format id sample request response result input output inputs request_body response_body",
)

HOLDER = define_members(
    "what holds a body",
    "body message inputBodyJson outputBodyJson",
)
REQUEST_PATHS = (("request", "body"), ("request",), ("input", "inputBodyJson"), ("request_body",))
RESPONSE_PATHS = (
    ("response", "body"),
    ("response",),
    ("result", "message"),
    ("output", "outputBodyJson"),
    ("response_body",),
)
OPERATION_PATHS = (("inputs",),), (("output",),)
"""The same in a traced operation, which has an `op_name` (Weave)."""
"""Paths to the bodies of requests and responses, inner ones first."""


def read(record: ExchangeTrace) -> WrapperContents:
    """Read the one exchange of a validated record. Raises InputError: no response."""
    raw = cast("dict[str, JsonValue]", record)  # a validated record is JSON
    reply, reply_path = _find(raw, _list_paths(raw)[1])
    if not reply:
        raise InputError.at("", 'expected {"request": {...}, "response": {...}}, or a line of a batch\'s results')
    notes = Transcript()
    request, request_path = _find(raw, _list_paths(raw)[0])
    if not request and _is_request(raw):  # then everything beside the messages is part of the request
        request = {name: value for name, value in raw.items() if name not in RECORD.read}
    else:
        note_unread_members(notes, record, RECORD, "")
    for path in (request_path, reply_path):
        _note_holder(notes, raw, *path.split("/")[1:])
    _note_beside(notes, raw, ("request", "input"), request_path)
    _note_beside(notes, raw, ("response", "result", "output"), reply_path)
    return WrapperContents(
        [Exchange(request, request_path, reply, reply_path, sample=record.get("sample"))],
        id=record.get("id"),
        notes=notes,
    )


def _list_paths(raw: JsonObject) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    """Return the paths to a request and to its response."""
    return OPERATION_PATHS if "op_name" in raw else (REQUEST_PATHS, RESPONSE_PATHS)


def _note_holder(notes: Transcript, raw: JsonObject, name: str = "", inner: str = "") -> None:
    """Report what stands beside a body in the object that holds it."""
    if inner:
        note_unread_members(notes, find_object(raw, name), replace(HOLDER, read=frozenset([inner])), f"/{name}")


def _note_beside(notes: Transcript, raw: JsonObject, names: tuple[str, ...], chosen: str) -> None:
    """Report what stands beside the body that is read; another reply may hold what the model said."""
    for name in names:
        value = raw.get(name)
        if value and not chosen.startswith(f"/{name}"):
            what = f"the member {name!r} of the trace, beside {chosen[1:] or 'nothing'!r},"
            reply = any(way[0] == name and _find(raw, (way,))[0] for way in RESPONSE_PATHS)
            note_unread_value(notes, value, f"/{name}", what, holds="text" if reply else "other", by_id=False)


def _find(record: JsonObject, ways: tuple[tuple[str, ...], ...]) -> tuple[dict[str, JsonValue], str]:
    """Return the object at the first path that leads to one, and its pointer; {} if none does."""
    for way in ways:
        here: Mapping[str, JsonValue] = record
        for name in way:
            here = find_object(here, name)
        if here:
            return dict(here), "/" + "/".join(way)
    return {}, ""


def _recognise(record: JsonObject) -> bool:
    paired = bool(find_object(record, "request") or "custom_id" in record or _find(record, _list_paths(record)[0])[0])
    return (paired or _is_request(record)) and bool(_find(record, _list_paths(record)[1])[0])


def _is_request(record: JsonObject) -> bool:
    """Whether a record is itself the request, with the reply beside its messages."""
    return isinstance(record.get("messages"), list) and not record.keys() & LITELLM_MEMBERS


FORMAT = Format(
    ExchangeTrace, read, _recognise, rank=14, hint="request beside response, or a line of a batch's results", place=15
)
