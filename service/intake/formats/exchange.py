"""A request and its response as a program logs them, of any provider: `{"request": {...}, "response": {...}}`.

Also a line of a batch's results, which has the response alone (OpenAI's `response.body`, Anthropic's `result.message`), and
Bedrock's log of invocations (`input.inputBodyJson`, `output.outputBodyJson`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, cast

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.errors import InputError
from service.intake.accounting import account_members, members_of
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given, find_object
from service.intake.wrapping import Exchange, Wrapped


@with_config(OPEN)
class ExchangeTrace(TypedDict):
    """A request's body and a response's, or the latter alone."""

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
"""Where the bodies of requests and responses stand, the inner places first."""


def read(record: ExchangeTrace) -> Wrapped:
    """The one exchange of a validated record. Raises InputError: no response."""
    given = cast("dict[str, JsonValue]", record)  # a validated record is JSON
    reply, reply_at = _find(given, REPLIED)
    if not reply:
        raise InputError.at("", 'expected {"request": {...}, "response": {...}}, or a line of a batch\'s results')
    lost = Transcript()
    account_members(lost, record, RECORD, "")
    asked, asked_at = _find(given, ASKED)
    for path in (asked_at, reply_at):
        if path.count("/") > 1:
            name = path.split("/")[1]
            account_members(lost, find_object(given, name), HOLDER, f"/{name}")
    return Wrapped(
        [Exchange(asked, asked_at, reply, reply_at, sample=record.get("sample"))], id=record.get("id"), lost=lost
    )


def _find(record: Given, ways: tuple[tuple[str, ...], ...]) -> tuple[dict[str, JsonValue], str]:
    """The object at the first of these ways that leads to one, and its pointer; {} where none does."""
    for way in ways:
        here: Mapping[str, JsonValue] = record
        for name in way:
            here = find_object(here, name)
        if here:
            return dict(here), "/" + "/".join(way)
    return {}, ""


def _recognise(record: Given) -> bool:
    paired = bool(find_object(record, "request") or "custom_id" in record or _find(record, ASKED)[0])
    return paired and bool(_find(record, REPLIED)[0])


FORMAT = Format(
    ExchangeTrace, read, _recognise, rank=14, marks="request beside response, or a line of a batch's results", place=15
)
