"""Responses API items for tools that the provider runs itself, or asks the user's machine to run.

A call takes its tool's name from `tools`, which may carry a version (`web_search_preview`), or else from the type of
its item. A tool of an MCP server is on offer once the server lists it or the provider has run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from service.core.trace import ToolCall, ToolDef, ToolResult
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.tools import read_tools

JsonObject = Mapping[str, Any]


class HostedTool(NamedTuple):
    """How to read a call of one type of hosted tool from its item."""

    tool: str
    """What the tool's type starts with."""
    find_arguments: Callable[[JsonObject], JsonValue]
    result: str = ""
    """The member that holds the result, if it stands in the same item."""


def _pick(*names: str) -> Callable[[JsonObject], JsonValue]:
    return lambda item: {name: item[name] for name in names if item.get(name) is not None}


def _take(name: str) -> Callable[[JsonObject], JsonValue]:
    return lambda item: item.get(name)


def _find_action(item: JsonObject) -> JsonValue:
    action = item.get("action")
    return {"actions": item["actions"]} if action is None and "actions" in item else action


HOSTED_TOOLS: Mapping[str, HostedTool] = {
    "web_search_call": HostedTool("web_search", _find_action, "results"),
    "file_search_call": HostedTool("file_search", _pick("queries"), "results"),
    "code_interpreter_call": HostedTool("code_interpreter", _pick("code"), "outputs"),
    "image_generation_call": HostedTool("image_generation", _pick("revised_prompt")),
    "computer_call": HostedTool("computer", _find_action),
    "local_shell_call": HostedTool("local_shell", _find_action),
    "shell_call": HostedTool("shell", _find_action),
    "apply_patch_call": HostedTool("apply_patch", _take("operation")),
    "tool_search_call": HostedTool("tool_search", _take("arguments")),
}
"""Items that call a hosted tool, by type."""

OUTPUTS = frozenset([f"{kind}_output" for kind in HOSTED_TOOLS] + ["tool_search_output"])
"""Types of items that hold the result of such a call."""


def list_hosted(tools: object) -> list[str]:
    """List the names of the hosted tools on offer. A function has a name of its own; a hosted tool goes by its type."""
    raw = (
        [cast("JsonObject", tool) for tool in cast("list[object]", tools) if isinstance(tool, dict)]
        if isinstance(tools, list)
        else []
    )
    return [str(tool.get("type")) for tool in raw if not tool.keys() & {"name", "function", "custom"}]


def build_hosted(item: JsonObject, hosted: Sequence[str] = ()) -> tuple[ToolCall, ToolResult | None]:
    """Build a hosted tool's call, and its result if the item has it. `hosted`: names of the hosted tools on offer."""
    kind = HOSTED_TOOLS[item["type"]]
    name = next((name for name in hosted if name.startswith(kind.tool)), kind.tool)
    arguments = kind.find_arguments(item)
    call = build_tool_call(item.get("call_id") or item.get("id"), name, arguments)
    failed = item.get("status") == "failed"
    returned = item.get(kind.result)
    result = ToolResult(returned, failed) if returned is not None or failed else None
    return (call if arguments else replace(call, arguments=None, captured=False)), result


def read_hosted(transcript: Transcript, item: JsonObject, hosted: Sequence[str]) -> None:
    """Add a hosted tool's call to the transcript, with its result if the item has it."""
    call, result = build_hosted(item, hosted)
    transcript.offer(ToolDef(call.name))
    transcript.call(call)
    if result is not None:
        transcript.answer(result)


def read_output(transcript: Transcript, item: JsonObject, path: str) -> None:
    """Add the result of a hosted tool's call. Tools found by a search are on offer from now on."""
    found = item.get("tools")
    for tool in read_tools(found, path=f"{path}/tools") or ():
        transcript.offer(tool, late=True)
    output = item.get("output", found)
    transcript.add_result(
        item.get("call_id"), ToolResult(read_result_content(output), item.get("status") == "failed"), path=path
    )


def read_mcp_tools(transcript: Transcript, item: JsonObject, path: str) -> None:
    """Add the tools of an MCP server to those on offer."""
    for tool in read_tools(item.get("tools"), path=f"{path}/tools") or ():
        transcript.offer(tool, late=True)


def read_mcp_call(transcript: Transcript, item: JsonObject, path: str) -> None:
    """Add a call of an MCP server's tool. If it needed approval, the call was made when approval was requested.

    Raises InputError: a call without a name.
    """
    error = item.get("error")
    result = ToolResult(read_result_content(item.get("output") if error is None else error), error is not None)
    approval = item.get("approval_request_id")
    if approval is not None and transcript.has_call_id(approval):
        transcript.add_result(approval, result, path=path)
        return
    name = item.get("name")
    if not name:
        raise InputError.at(path, "a call needs a name")
    transcript.offer(ToolDef(name))
    transcript.call(build_tool_call(item.get("id"), name, item.get("arguments")))
    if error is not None or "output" in item:
        transcript.answer(result)
