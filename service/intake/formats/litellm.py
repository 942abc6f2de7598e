"""LiteLLM's log of a call (`StandardLoggingPayload`): the messages sent to a model, and its response.

A row of the spend logs may have the messages in `proxy_server_request`, the body sent to the proxy.
"""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.runs import NOTHING, locate
from service.intake.wrapping import Exchange, WrapperContents

LITELLM_MEMBERS = frozenset({"litellm_call_id", "call_type", "model_parameters"})
"""Members that no other format has beside messages."""
_ERRORS = ("error_str", "error_information")


def _read(record: Cursor) -> WrapperContents:
    parameters = record.child("model_parameters")
    tools = locate(parameters, "tools") if "tools" in parameters else NOTHING
    parameters.take("functions")
    chosen = next((name for name in ("messages", "proxy_server_request") if record.peek(name) not in _NONE), "messages")
    given, reply = locate(record, chosen), locate(record, "response")
    status = record.text("status")
    if not record.peek("response") and (
        status == "failure" or (status != "success" and any(record.peek(name) for name in _ERRORS))
    ):
        place = next(name for name in ("response", "status", *_ERRORS) if name in record)
        record.out.miss_reply(f"/{place}", "the reply of a request that failed")
    for name in _ERRORS:
        record.take(name)
    sample = record.take("sample")
    exchange = Exchange(*given, *reply, *tools, sample=sample if isinstance(sample, int) else None)
    return WrapperContents([exchange], id=record.text("id") or None, notes=record.out)


_NONE: tuple[JsonValue, ...] = (None, "", "{}", "[]", {}, [])


def _recognise(record: JsonObject) -> bool:
    has_input = "messages" in record or "proxy_server_request" in record
    return has_input and bool(record.keys() & LITELLM_MEMBERS)


FORMATS = (
    Format(
        name="litellm",
        read=_read,
        recognise=_recognise,
        score=76,
        summary="What LiteLLM passes to a logging callback, a row of its spend logs, or a line of a log bucket.",
        hint="messages with litellm_call_id, call_type or model_parameters",
    ),
)
