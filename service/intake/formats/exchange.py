"""A request and its response as a program logs them, for any provider: `{"request": {...}, "response": {...}}`.

The request may be the record itself: `{"messages": [...], "response": {...}}`. Also read: a line of a batch's results,
which has the response alone (OpenAI's `response.body`, Anthropic's `result.message`), and Bedrock's invocation log
(`input.inputBodyJson`, `output.outputBodyJson`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_object
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.formats.litellm import LITELLM_MEMBERS
from service.intake.wrapping import Exchange, WrapperContents

Ways = tuple[tuple[str, ...], ...]
"""Paths to the body of a request or a response, inner ones first."""
_REQUESTS: Ways = (("request", "body"), ("request",), ("input", "inputBodyJson"), ("request_body",))
_RESPONSES: Ways = (
    ("response", "body"),
    ("response",),
    ("result", "message"),
    ("output", "outputBodyJson"),
    ("response_body",),
)
_OPERATION: tuple[Ways, Ways] = (("inputs",),), (("output",),)
"""The same in a traced operation, which has an `op_name` (Weave)."""


def _read(record: Cursor) -> WrapperContents:
    raw = record.members
    requests, responses = _list_ways(raw)
    reply, way = _find(raw, responses)
    if not reply:
        raise InputError.at("", 'expected {"request": {...}, "response": {...}}, or a line of a batch\'s results')
    request, request_way = _find(raw, requests)
    sample, trace_id = record.take("sample"), as_text(raw.get("id"))
    for taken in (way, request_way):
        if taken:
            holder = record if len(taken) == 1 else record.child(taken[0], of="what holds a body")
            holder.take(taken[-1])
    _leave_beside(record, ("request", "input"), request_way, responses)
    _leave_beside(record, ("response", "result", "output"), way, responses)
    if not request and _is_request(raw):  # then everything beside the messages is part of the request
        request = {name: record.take(name) for name in record.list_untaken()}
    return WrapperContents(
        [
            Exchange(
                request, _point(request_way), reply, _point(way), sample=sample if isinstance(sample, int) else None
            )
        ],
        id=trace_id,
        notes=record.out,
    )


def _point(way: tuple[str, ...]) -> str:
    return "".join([f"/{name}" for name in way])


def _list_ways(raw: JsonObject) -> tuple[Ways, Ways]:
    """Return the paths to a request and to its response."""
    return _OPERATION if "op_name" in raw else (_REQUESTS, _RESPONSES)


def _leave_beside(record: Cursor, names: tuple[str, ...], chosen: tuple[str, ...], responses: Ways) -> None:
    """Leave what stands beside the body that is read; another reply may hold what the model said."""
    for name in names:
        if record.peek(name) and chosen[:1] != (name,):
            reply = any(way[0] == name and _find(record.members, (way,))[0] for way in responses)
            what = f"the member {name!r} of the trace, beside {_point(chosen)[1:] or 'nothing'!r},"
            record.member(name).leave(what, holds="text" if reply else "other", by_id=False)


def _find(record: JsonObject, ways: Ways) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the object at the first path that leads to one, and the path; {} if none does."""
    for way in ways:
        here: Mapping[str, JsonValue] = record
        for name in way:
            here = find_object(here, name)
        if here:
            return dict(here), way
    return {}, ()


def _recognise(record: JsonObject) -> bool:
    requests, responses = _list_ways(record)
    paired = bool(find_object(record, "request") or "custom_id" in record or _find(record, requests)[0])
    return (paired or _is_request(record)) and bool(_find(record, responses)[0])


def _is_request(record: JsonObject) -> bool:
    """Whether a record is itself the request, with the reply beside its messages."""
    return isinstance(record.get("messages"), list) and not record.keys() & LITELLM_MEMBERS


FORMATS = (
    Format(
        name="exchange",
        read=_read,
        recognise=_recognise,
        score=86,
        summary="The bodies of a request and its response, or of a response alone.",
        hint="request with response, or a line of a batch's results",
    ),
)
