"""LiteLLM's log of a call (`StandardLoggingPayload`): the messages sent to a model, and its response.

A row of the spend logs may have the messages in `proxy_server_request`, the body sent to the proxy.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.texts import parse_text
from service.intake.unread_parts.members import (
    define_members,
    note_unread_alternatives,
    note_unread_members,
    note_unread_value,
)
from service.intake.wrapping import Exchange, WrapperContents


@with_config(OPEN)
class LiteLLMTrace(TypedDict):
    """The payload of a logging callback, a spend log or a bucket."""

    format: Literal["litellm"]
    id: NotRequired[str | None]
    sample: NotRequired[int | None]
    messages: NotRequired[Loose]
    proxy_server_request: NotRequired[Loose]
    response: NotRequired[Loose]
    status: NotRequired[Loose]
    error_str: NotRequired[Loose]
    error_information: NotRequired[Loose]
    model_parameters: NotRequired[Loose]


RECORD = define_members(
    "the trace",
    "format id sample messages proxy_server_request response model_parameters status error_str error_information",
)


LITELLM_MEMBERS = frozenset({"litellm_call_id", "call_type", "model_parameters"})
"""Members that no other format has beside messages."""


def read(record: LiteLLMTrace) -> WrapperContents:
    """Read the one exchange of a validated record."""
    notes = Transcript()
    note_unread_members(notes, record, RECORD, "")
    parameters = record.get("model_parameters")
    if isinstance(parameters, dict):
        others = {name: value for name, value in parameters.items() if name not in ("tools", "functions")}
        note_unread_value(notes, others, "/model_parameters", "a parameter")
    tools = parameters.get("tools") if isinstance(parameters, dict) else None
    if not record.get("response"):
        _note_missing_reply(notes, record)
    inputs = {name: parse_text(record.get(name)) for name in ("messages", "proxy_server_request")}
    chosen = next((name for name, raw in inputs.items() if raw), "messages")
    note_unread_alternatives(notes, inputs, inputs, chosen, "the trace")
    exchange = Exchange(
        inputs[chosen],
        f"/{chosen}",
        parse_text(record.get("response")),
        "/response",
        tools,
        "/model_parameters/tools",
        record.get("sample"),
    )
    return WrapperContents([exchange], id=record.get("id"), notes=notes)


def _note_missing_reply(notes: Transcript, record: LiteLLMTrace) -> None:
    """Report the missing reply of a request that failed."""
    errors = {name: record.get(name) for name in ("error_str", "error_information")}
    if record.get("status") == "failure" or (record.get("status") != "success" and any(errors.values())):
        place = next(name for name in ("response", "status", *errors) if name in record)
        notes.miss_reply(f"/{place}", "the reply of a request that failed")


def _recognise(record: JsonObject) -> bool:
    has_input = "messages" in record or "proxy_server_request" in record
    return has_input and bool(record.keys() & LITELLM_MEMBERS)


FORMAT = Format(
    LiteLLMTrace,
    read,
    _recognise,
    rank=24,
    hint="messages beside litellm_call_id, call_type or model_parameters",
    place=20,
)
