"""LiteLLM's log of a call (`StandardLoggingPayload`): the messages sent to a model, and its response.

A row of the spend logs may have the messages in `proxy_server_request`, the body sent to the proxy.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from service.intake.accounting import account_members, account_others, lose_calls, members_of
from service.intake.build import Transcript
from service.intake.endings import lose_reply
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given
from service.intake.texts import parse_text
from service.intake.wrapping import Exchange, Wrapped


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


RECORD = members_of(
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


MARKS = frozenset({"litellm_call_id", "call_type", "model_parameters"})
"""Members that no other format has beside messages."""


def read(record: LiteLLMTrace) -> Wrapped:
    """Read the one exchange of a validated record."""
    lost = Transcript()
    account_members(lost, record, RECORD, "")
    parameters = record.get("model_parameters")
    if isinstance(parameters, dict):
        beside = {name: value for name, value in parameters.items() if name not in ("tools", "functions")}
        lose_calls(lost, beside, "/model_parameters", "a parameter")
    tools = parameters.get("tools") if isinstance(parameters, dict) else None
    if not record.get("response"):
        _lose_reply(lost, record)
    asked = {name: parse_text(record.get(name)) for name in ("messages", "proxy_server_request")}
    chosen = next((name for name, given in asked.items() if given), "messages")
    account_others(lost, asked, asked, chosen, "the trace")
    exchange = Exchange(
        asked[chosen],
        f"/{chosen}",
        parse_text(record.get("response")),
        "/response",
        tools,
        "/model_parameters/tools",
        record.get("sample"),
    )
    return Wrapped([exchange], id=record.get("id"), lost=lost)


def _lose_reply(lost: Transcript, record: LiteLLMTrace) -> None:
    """Report the missing reply of a request that failed."""
    signs = {name: record.get(name) for name in ("error_str", "error_information")}
    if record.get("status") == "failure" or (record.get("status") != "success" and any(signs.values())):
        place = next(name for name in ("response", "status", *signs) if name in record)
        lose_reply(lost, f"/{place}", "the reply of a request that failed")


def _recognise(record: Given) -> bool:
    asked = "messages" in record or "proxy_server_request" in record
    return asked and bool(record.keys() & MARKS)


FORMAT = Format(
    LiteLLMTrace,
    read,
    _recognise,
    rank=24,
    marks="messages beside litellm_call_id, call_type or model_parameters",
    place=20,
)
