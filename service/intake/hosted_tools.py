"""Parts for tools that a provider runs itself, or asks the user's machine to run, as the Responses API writes them.

A call takes its tool's name from `tools`, which may carry a version (`web_search_preview`), or else from the type of
its item. A tool of an MCP server is on offer once the server lists it or the provider has run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from pydantic import JsonValue

from service.core.trace import ToolDef, ToolResult
from service.errors import InputError
from service.intake.build import Sink
from service.intake.calls import build_tool_call, read_result_content
from service.intake.cursor import Cursor
from service.intake.tools import read_tools


class _Hosted(NamedTuple):
    """How to read a call of one type of hosted tool from its item."""

    tool: str
    """What the tool's type starts with."""
    arguments: tuple[str, ...]
    """The members with the arguments: a first one that is an object is all of them."""
    result: tuple[str, ...] = ()
    """The member that holds the result, if it stands in the same item."""


_CALLS: Mapping[str, _Hosted] = {
    "web_search_call": _Hosted("web_search", ("action",), ("results",)),
    "file_search_call": _Hosted("file_search", ("queries",), ("results",)),
    "code_interpreter_call": _Hosted("code_interpreter", ("code",), ("outputs",)),
    "image_generation_call": _Hosted("image_generation", ("revised_prompt",)),
    "computer_call": _Hosted("computer", ("action", "actions")),
    "local_shell_call": _Hosted("local_shell", ("action",)),
    "shell_call": _Hosted("shell", ("action",)),
    "apply_patch_call": _Hosted("apply_patch", ("operation",)),
    "tool_search_call": _Hosted("tool_search", ("arguments",)),
}
_OUTPUTS = frozenset([f"{kind}_output" for kind in _CALLS] + ["tool_search_output"])
_MCP = frozenset({"mcp_call", "mcp_approval_request", "mcp_list_tools"})
HOSTED: Final = frozenset(_CALLS) | _OUTPUTS | _MCP
"""Types of parts that are read here."""


def read_hosted(sink: Sink, kind: str, item: Cursor) -> None:
    """Read a part of one of the types in `HOSTED`. Raises InputError: a call of an MCP server's tool without a name."""
    if kind in _CALLS:
        _read_call(sink, _CALLS[kind], item)
    elif kind in _OUTPUTS:  # tools found by a search are on offer from now on
        found = item.peek("tools")
        _offer(item)
        content = read_result_content(item.take("output") if "output" in item else found)
        sink.add_result(item.text("call_id"), ToolResult(content, item.text("status") == "failed"), path=item.path)
    elif kind == "mcp_list_tools":
        _offer(item)
    else:
        _read_mcp_call(sink, item)


def _read_call(sink: Sink, hosted: _Hosted, item: Cursor) -> None:
    name = next((name for name in item.out.hosted if name.startswith(hosted.tool)), hosted.tool)
    given: dict[str, JsonValue] = {name: value for name in hosted.arguments if (value := item.take(name)) is not None}
    first = next(iter(given.values()), None)
    arguments = first if isinstance(first, dict) or hosted.tool == "tool_search" else given or None
    call_id, item_id = item.text("call_id"), item.text("id")
    call = build_tool_call(call_id or item_id, name, arguments)
    item.take_all("result", "name", "arguments")  # an image; and what the common form of a call has
    failed, returned = item.text("status") == "failed", item.take(*hosted.result)
    result = ToolResult(returned, failed) if returned is not None or failed else None
    item.out.offer(ToolDef(name))
    sink.call(call if arguments else replace(call, arguments=None, captured=False), result)


def _offer(item: Cursor) -> None:
    item.text("server_label")
    for tool in read_tools(item.take("tools"), path=f"{item.path}/tools") or ():
        item.out.offer(tool, late=True)


def _read_mcp_call(sink: Sink, item: Cursor) -> None:
    """Read a call of an MCP server's tool. If it needed approval, the call was made when approval was requested."""
    error, returned = item.take("error"), "output" in item
    content = read_result_content(item.take("output") if error is None else error)
    result = ToolResult(content, error is not None) if error is not None or returned else None
    approval = item.text("approval_request_id")
    item_id, name, arguments = item.text("id"), item.text("name"), item.take("arguments")
    item.text("server_label")
    if approval and approval in item.out.call_ids:
        sink.add_result(approval, result or ToolResult(None), path=item.path)
        return
    if not name:
        raise InputError.at(item.path, "a call needs a name")
    item.out.offer(ToolDef(name))
    sink.call(build_tool_call(item_id, name, arguments), result)
