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

from service.errors import InputError
from service.intake.accounting import account_members, lose_value, members_of
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.formats.litellm import MARKS
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given, find_object
from service.intake.wrapping import Exchange, Wrapped


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


RECORD = members_of(
    "the trace",
    "format id sample request response result input output",
    "custom_id error method url timestamp created_at createdAt latency latency_ms duration duration_ms status status_code "
    "model schemaType schemaVersion accountId identity region requestId operation modelId requestMetadata "
    "inferenceRegion errorCode",
)

HOLDER = members_of(
    "what holds a body",
    "body message inputBodyJson outputBodyJson",
    "status_code request_id headers type url method inputContentType inputTokenCount inputBodyS3Path outputContentType "
    "outputTokenCount outputBodyS3Path cacheReadInputTokenCount cacheWriteInputTokenCount",
)
ASKED = (("request", "body"), ("request",), ("input", "inputBodyJson"))
REPLIED = (("response", "body"), ("response",), ("result", "message"), ("output", "outputBodyJson"))
"""Paths to the bodies of requests and responses, inner ones first."""


def read(record: ExchangeTrace) -> Wrapped:
    """Read the one exchange of a validated record. Raises InputError: no response."""
    given = cast("dict[str, JsonValue]", record)  # a validated record is JSON
    reply, reply_at = _find(given, REPLIED)
    if not reply:
        raise InputError.at("", 'expected {"request": {...}, "response": {...}}, or a line of a batch\'s results')
    lost = Transcript()
    asked, asked_at = _find(given, ASKED)
    if not asked and _is_asked(given):  # whatever stands beside the messages belongs to them
        asked = {name: value for name, value in given.items() if name not in RECORD.read}
    else:
        account_members(lost, record, RECORD, "")
    for path in (asked_at, reply_at):
        _account_holder(lost, given, *path.split("/")[1:])
    _account_beside(lost, given, ("request", "input"), asked_at)
    _account_beside(lost, given, ("response", "result", "output"), reply_at)
    return Wrapped(
        [Exchange(asked, asked_at, reply, reply_at, sample=record.get("sample"))], id=record.get("id"), lost=lost
    )


def _account_holder(lost: Transcript, given: Given, name: str = "", inner: str = "") -> None:
    """Report what stands beside a body in the object that holds it."""
    if inner:
        account_members(lost, find_object(given, name), replace(HOLDER, read=frozenset([inner])), f"/{name}")


def _account_beside(lost: Transcript, given: Given, names: tuple[str, ...], chosen: str) -> None:
    """Report what stands beside the body that is read; another reply may hold what the model said."""
    for name in names:
        value = given.get(name)
        if value and not chosen.startswith(f"/{name}"):
            what = f"the member {name!r} of the trace, beside {chosen[1:] or 'nothing'!r},"
            reply = any(way[0] == name and _find(given, (way,))[0] for way in REPLIED)
            lose_value(lost, value, f"/{name}", what, holds="text" if reply else "other", by_id=False)


def _find(record: Given, ways: tuple[tuple[str, ...], ...]) -> tuple[dict[str, JsonValue], str]:
    """Return the object at the first path that leads to one, and its pointer; {} if none does."""
    for way in ways:
        here: Mapping[str, JsonValue] = record
        for name in way:
            here = find_object(here, name)
        if here:
            return dict(here), "/" + "/".join(way)
    return {}, ""


def _recognise(record: Given) -> bool:
    paired = bool(find_object(record, "request") or "custom_id" in record or _find(record, ASKED)[0])
    return (paired or _is_asked(record)) and bool(_find(record, REPLIED)[0])


def _is_asked(record: Given) -> bool:
    """Whether a record is itself the request, with the reply beside its messages."""
    return isinstance(record.get("messages"), list) and not record.keys() & MARKS


FORMAT = Format(
    ExchangeTrace, read, _recognise, rank=14, marks="request beside response, or a line of a batch's results", place=15
)
