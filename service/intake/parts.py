"""Read the parts of a message in any provider's dialect: texts, calls, results and thoughts.

Dialects differ in names, hardly in structure. A part names its type in `type`, or by the member that holds it
(`toolUse`, `functionCall`); types are compared in snake case, so that `tool-call`, `toolCall` and `tool_call` are one.
A type that is not listed here is left to be judged by what it could be.

Of a tool that the provider runs itself, or asks the user's machine to run, the Responses API writes a part of its own. A call
takes its tool's name from `tools`, which may carry a version (`web_search_preview`), or else from the type of its item. A tool
of an MCP server is on offer once the server lists it or the provider has run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from service.core.json.members import as_text, read_type
from service.core.trace import CUSTOM_TOOL, ToolCall, ToolDef, ToolResult, UnreadKind
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.texts import build_tool_call, read_result_content, to_snake
from service.intake.tools import read_tools
from service.intake.unread_parts.repeated_calls import TraceCalls
from service.intake.unread_parts.suspects import clip, guess_kind, looks_like_call

TEXTS: Final = frozenset({"text", "input_text", "output_text", "refusal", "speech", "text_content"})
THOUGHTS: Final = frozenset(
    [
        *("thinking", "redacted_thinking", "reasoning", "redacted_reasoning", "thought"),
        *("reasoning_text", "reasoning_content", "summary_text"),
    ]
)
RUN_BY_PROVIDER: Final = frozenset({"server_tool_use", "mcp_tool_use", "server_tool_call", "mcp_tool_call"})
"""Calls of tools that the provider has run, which are therefore on offer even if the request does not list them."""
CALLS: Final = (
    frozenset(["tool_use", "tool_call", "invalid_tool_call", "function_call", "custom_tool_call"]) | RUN_BY_PROVIDER
)
RESULTS: Final = frozenset(
    [
        *("tool_result", "tool_error", "tool_call_response", "function_response"),
        *("function_call_output", "custom_tool_call_output"),
    ]
)
_IDLE = frozenset(
    [
        *("cache_point", "compaction", "input_json_delta", "non_standard_annotation", "mcp_approval_response"),
        *("video_metadata", "source", "source_url", "source_document", "step_start"),
    ]
)
"""Parts that hold nothing that is scored, unless what is in them looks like it."""
NAMING: Final = frozenset(
    [
        *("tool_use", "tool_result", "function_call", "function_response", "executable_code", "code_execution_result"),
        *("citations_content", "reasoning_content", "cache_point"),
    ]
)
"""Types that the member which holds the part may name."""

_TYPES = ("type", "part_kind", "kind", "block_type")
_NAMES = ("name", "toolName", "tool_name", "function_name")
ARGUMENTS = (
    *("partial_json", "arguments", "args", "input", "rawInput", "parameters"),
    *("inputParameters", "input_parameters", "tool_kwargs"),
)
_CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "source_call_id", "tool_id")
_RETURNED = ("content", "output", "result", "response", "tool_result")
_HOLDERS = ("function", "custom", "tool_call", "toolInvocation")
"""What may hold a call's name and arguments, beside its id."""


def open_part(part: Cursor) -> tuple[str, Cursor]:
    """Return a part's type in snake case, "?" if it has none, and the node with what it holds."""
    raw = part.raw
    if isinstance(raw, str):
        return "text", part
    if not isinstance(raw, Mapping):
        return "?", part
    name = next((name for name in _TYPES if isinstance(raw.get(name), str)), "")
    kind = part.take(name) if name else None
    if isinstance(kind, str):
        return to_snake(kind), part
    for name, value in raw.items():
        if isinstance(value, dict) and (snake := to_snake(name)) in NAMING:
            return snake, part.child(name)
    return ("text" if isinstance(raw.get("text"), str) else "?"), part


def take_text(part: Cursor) -> str:
    """Return the text of a part."""
    return part.raw if isinstance(part.raw, str) else part.text(*_SAID)


_SAID = ("text", "refusal", "content")


def add_part(part: Cursor, beside: TraceCalls | None = None) -> None:
    """Read a part of a reply, or an item beside messages. Raises InputError: a call without a name."""
    kind, body = open_part(part)
    if kind in TEXTS:
        _read_text_part(body)
    elif kind in HOSTED and "args" not in body:
        _read_hosted(kind, body)
    elif kind in CALLS or is_ui_call(part):
        _add_call(kind, part if is_ui_call(part) else body, beside)
    elif kind in RESULTS or kind.endswith("tool_result"):
        add_result(body)
    elif kind in ("executable_code", "code_execution_result"):
        _read_code(kind, body)
    elif kind == "citations_content":
        part.out.add_text("".join([piece.text("text") for piece in body.items("content")]))
    elif kind == "step_start":
        part.out.cut()
    else:
        leave_part(part, kind, body)
    if body is not part and isinstance(part.peek("text"), str) and part.peek("thought") is not True:
        part.out.add_text(part.text("text"))


def leave_part(part: Cursor, kind: str, body: Cursor, *, of_user: bool = False) -> None:
    """Leave a part with nothing to be scored, or of a type that nobody reads; what a user shows leaves nothing open.

    One that names no type is named by the objects in it.
    """
    if kind in THOUGHTS or kind in _IDLE or str(part.peek("type")).startswith("data-") or _is_approval(part):
        part.leave("a thought" if kind in THOUGHTS else "a part")
        return
    called = looks_like_call(body.members)
    inner = [name for name, value in body.members.items() if isinstance(value, dict)]
    if kind == "?" and inner and not called and "name" not in body:  # a name beside arguments may be a call
        for name in inner:
            leave_part(body.member(name), to_snake(name), body.member(name), of_user=of_user)
        return
    holds: UnreadKind = "call" if called or kind == "executable_code" else guess_kind(kind)
    shown = of_user and holds == "text"
    body.leave(f"a part of the type {clip(kind)}", holds="other" if shown else holds, shown=shown)


def _read_text_part(part: Cursor) -> None:
    if part.peek("thought") is True:
        part.leave("a thought")
    elif len(part.members) > 2 and looks_like_call(part.members):
        leave_part(part, "call", part)
    else:
        part.out.add_text(take_text(part))
        part.tells_of("reply", silent=not any(name in part for name in _SAID))


def _add_call(kind: str, part: Cursor, beside: TraceCalls | None) -> None:
    call, shown = take_call(part), is_ui_call(part)
    inner = part.child("toolInvocation") or part
    run = not {kind, part.text("type")}.isdisjoint(RUN_BY_PROVIDER) or inner.flag("providerExecuted")
    if run:
        part.out.offer(ToolDef(call.name))
    returned = ToolResult(read_result_content(part.take("output"))) if run and "output" in part and not shown else None
    if (run and not shown) or beside is None or not beside.has(call):
        part.out.call(call, read_ui_result(part) if shown else returned)


_PLAIN_CALL = frozenset({"id", "type", "function"})
_PLAIN_FUNCTION = frozenset({"name", "arguments"})
"""What a call of Chat Completions has: most calls are read at once."""


def take_call(part: Cursor) -> ToolCall:
    """Read a call: its name and arguments stand in it, or in the object that one of its members holds.

    Raises InputError: it has no name.
    """
    if _PLAIN_CALL.issuperset(part.members):
        function = part.members.get("function")
        if (
            isinstance(function, dict)
            and _PLAIN_FUNCTION.issuperset(function)
            and ("arguments" in function or not part.out.sparse)
            and (name := as_text(function.get("name")))
        ):
            part.drop()
            return build_tool_call(as_text(part.members.get("id")), name, function.get("arguments"))
    body = part.child(*_HOLDERS) or part
    custom = "custom" in part or part.peek("type") == "custom_tool_call"
    item_id = part.text("id")
    call_id = part.text(*_CALL_IDS) or ("" if body is part else body.text(*_CALL_IDS, "id")) or item_id
    kind = part.text("type")
    name = body.text(*_NAMES) or part.text("function")
    name = name or (kind.removeprefix("tool-") if kind.startswith("tool-") and kind not in _NO_UI else "")
    if not name:
        raise InputError.at(
            part.path, 'a call needs a name: {"name", "arguments"}, or {"function": {"name", "arguments"}}'
        )
    if custom:
        return ToolCall(call_id or None, name, None, body.take("input"), CUSTOM_TOOL)
    problem = part.text("parse_error")
    if problem:
        body.take(*ARGUMENTS)
        return ToolCall(call_id or None, name, None, problem, problem)
    partial = body.take("partialArgs", "partial_args") and not body.peek("args")
    partial = partial or body.peek("state") in ("input-streaming", "partial-call")  # pieces of a stream
    if partial or (part.out.sparse and not any(one in body for one in ARGUMENTS)):
        return ToolCall(call_id or None, name, None, captured=False)
    given = next((key for key in ARGUMENTS if body.peek(key) is not None), "")
    return build_tool_call(call_id, name, body.take(given) if given else None)


def add_result(part: Cursor, *, error_prefix: str | None = None) -> None:
    """Add what a call returned, as a part or a message of the tool says."""
    if not any(name in part for name in (*_RETURNED, "error")) and looks_like_call(part.members):
        leave_part(part, "call", part)
        return
    call_id = part.text(*_CALL_IDS) or part.text("id")
    tool = part.text(*_NAMES) or part.text("function")
    result = read_returned(part, error_prefix)
    part.take("type", "role")
    part.out.add_result(call_id or None, result, path=part.path, tool=tool or None)
    part.tells_of("result", silent=result is None or result.content in (None, "", [], {}))


def read_returned(part: Cursor, error_prefix: str | None = None) -> ToolResult | None:
    """Return what a call returned; None if it was not captured.

    It failed if the part says so; with `error_prefix`, also if its text starts with that.
    """
    failed = part.flag("is_error", "isError", "error") or part.text("status") in ("error", "failed")
    fault = part.peek("error")
    name = next((name for name in _RETURNED if name in part), None)
    if name is None:
        if isinstance(fault, (str, dict)) and fault:
            return ToolResult(read_result_content(part.take("error")), True)
        return ToolResult(None, failed) if failed or "tool_use_id" in part or "toolUseId" in part else None
    value = part.take(name)
    if isinstance(fault, (str, dict)) and fault:
        failed, _ = True, part.take("error")
        value = fault if value in (None, "") else value
    if name == "response" and isinstance(value, dict) and "type" not in part:  # Gemini's `functionResponse`
        if value.get("error") is not None:
            return ToolResult(read_result_content(value["error"] if len(value) == 1 else value), True)
        lone = len(value) == 1 and next(iter(value)) in ("output", "result")
        return ToolResult(read_result_content(next(iter(value.values())) if lone else value), failed)
    if "toolCallId" in part and isinstance(value, dict) and "value" in value | {"value": 0} and "type" in value:
        failed = failed or value["type"] in ("error-text", "error-json", "execution-denied")
        value = value.get("value", value.get("reason"))
    content = read_result_content(value)
    failed = failed or read_type(value).endswith("_tool_result_error")
    marked = error_prefix is not None and isinstance(content, str) and content.startswith(error_prefix)
    return ToolResult(content, failed or marked)


def _read_code(kind: str, part: Cursor) -> None:
    """Read code that Gemini wrote and ran itself, or what came of it."""
    call_id = part.text("id") or None
    if kind == "executable_code":
        part.out.offer(ToolDef("code_execution"))
        given: dict[str, JsonValue] = {name: part.take(name) for name in ("language", "code") if name in part}
        part.out.call(build_tool_call(call_id, "code_execution", given))
    else:
        result = ToolResult(part.take("output"), part.take("outcome") not in ("OUTCOME_OK", None))
        part.out.add_result(call_id, result, path=part.path, tool="code_execution")


_STATES = {"errorText": "output-error", "output": "output-available", "result": "result"}
"""The state that a member tells of, for parts that name none."""
_NO_UI = ("tool-call", "tool-invocation", "tool-result")


def is_ui_call(part: Cursor) -> bool:
    """Whether a part is a call as a user interface shows it: its type names the tool."""
    kind = as_text(part.peek("type")) or ""
    if kind == "tool-error":
        return "state" in part or "error" not in part
    named = kind.startswith("tool-") and kind not in _NO_UI
    return (named or kind == "dynamic-tool" or "toolInvocation" in part) and not _is_approval(part)


def _is_approval(part: Cursor) -> bool:
    """Whether a part tells of an approval. A tool may have the name of such a part."""
    named = part.peek("type") in ("tool-approval-request", "tool-approval-response")
    return named and "approvalId" in part and not any(name in part for name in ("state", "input", "args"))


def read_ui_result(part: Cursor) -> ToolResult | None:
    """Return what came of a call; None if nothing has yet. If a part has no state, its members tell which it is in."""
    body = part.child("toolInvocation") or part
    state = body.text("state") or next((state for key, state in _STATES.items() if key in body), "")
    if state in ("output-error", "output-denied"):
        denied = body.child("approval").text("reason")
        return ToolResult(read_result_content(body.take("errorText") if "errorText" in body else denied or None), True)
    key = {"output-available": "output", "result": "result"}.get(state)
    return ToolResult(read_result_content(body.take(key))) if key else None


_CALLS: Mapping[str, tuple[str, ...]] = {
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("revised_prompt",),
    "computer_call": ("action", "actions"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "tool_search_call": ("arguments",),
}
"""The members with the arguments, by type of call: a first one that is an object is all of them."""
_OUTPUTS = frozenset([f"{kind}_output" for kind in _CALLS] + ["tool_search_output"])
_MCP = frozenset({"mcp_call", "mcp_approval_request", "mcp_list_tools"})
HOSTED: Final = frozenset(_CALLS) | _OUTPUTS | _MCP
"""Types of parts that are read here."""


def _read_hosted(kind: str, item: Cursor) -> None:
    """Read a part of one of the types in `HOSTED`. Raises InputError: a call of an MCP server's tool without a name."""
    if kind in _CALLS:
        _read_call(kind, item)
    elif kind in _OUTPUTS:  # tools found by a search are on offer from now on
        found = item.peek("tools")
        _offer(item)
        content = read_result_content(item.take("output") if "output" in item else found)
        item.out.add_result(item.text("call_id"), ToolResult(content, item.text("status") == "failed"), path=item.path)
    elif kind == "mcp_list_tools":
        _offer(item)
    else:
        _read_mcp_call(item)


def _read_call(kind: str, item: Cursor) -> None:
    tool = kind.removesuffix("_call")
    name = next((name for name in item.out.hosted if name.startswith(tool)), tool)
    given: dict[str, JsonValue] = {name: value for name in _CALLS[kind] if (value := item.take(name)) is not None}
    first = next(iter(given.values()), None)
    arguments = first if isinstance(first, dict) or tool == "tool_search" else given or None
    call_id, item_id = item.text("call_id"), item.text("id")
    call = build_tool_call(call_id or item_id, name, arguments)
    item.take_all("result", "name", "arguments")  # an image; and what the common form of a call has
    failed, returned = item.text("status") == "failed", item.take("results", "outputs")
    result = ToolResult(returned, failed) if returned is not None or failed else None
    item.out.offer(ToolDef(name))
    item.out.call(call if arguments else replace(call, arguments=None, captured=False), result)


def _offer(item: Cursor) -> None:
    item.text("server_label")
    for tool in read_tools(item.take("tools"), path=f"{item.path}/tools") or ():
        item.out.offer(tool, late=True)


def _read_mcp_call(item: Cursor) -> None:
    """Read a call of an MCP server's tool. If it needed approval, the call was made when approval was requested."""
    error, returned = item.take("error"), "output" in item
    content = read_result_content(item.take("output") if error is None else error)
    result = ToolResult(content, error is not None) if error is not None or returned else None
    approval = item.text("approval_request_id")
    item_id, name, arguments = item.text("id"), item.text("name"), item.take("arguments")
    item.text("server_label")
    if approval and approval in item.out.call_ids:
        item.out.add_result(approval, result or ToolResult(None), path=item.path)
        return
    if not name:
        raise InputError.at(item.path, "a call needs a name")
    item.out.offer(ToolDef(name))
    item.out.call(build_tool_call(item_id, name, arguments), result)
