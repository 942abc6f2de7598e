"""LiteLLM's log of a call (`StandardLoggingPayload`): the messages sent to a model, and its response.

A row of the spend logs may have the messages in `proxy_server_request`, the body sent to the proxy.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject
from service.intake.build import Transcript
from service.intake.endings import note_missing_reply
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.texts import parse_text
from service.intake.unread import define_members, note_unread_alternatives, note_unread_calls, note_unread_members
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
    "request_id litellm_trace_id spend api_key user team_id organization_id agent_id mcp_namespaced_tool_name "
    "litellm_call_id trace_id session_id call_type cache_hit stream status_fields custom_llm_provider saved_cache_cost "
    "startTime endTime completionStartTime response_time model metadata cache_key response_cost cost_breakdown total_tokens "
    "prompt_tokens completion_tokens request_tags end_user api_base model_group model_id requester_ip_address user_agent "
    "hidden_params model_map_information response_cost_failure_debug_info "
    "zero_cost_diagnostic guardrail_information standard_built_in_tools_params request_model_access_groups "
    "autorouter_savings autorouter_savings_estimate autorouter_baseline_observation litellm_params",
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
        note_unread_calls(notes, others, "/model_parameters", "a parameter")
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
        note_missing_reply(notes, f"/{place}", "the reply of a request that failed")


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
