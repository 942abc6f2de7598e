"""The history of a pydantic-ai agent, as `ModelMessagesTypeAdapter` dumps it: requests and responses made of parts.

A return failed if its `outcome` is not success; so did a call answered by a `retry-prompt`. A retry-prompt that names
no tool comes from the framework, not the user. Tools of an MCP server go by their own names.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, find_object, find_text, list_objects
from service.core.trace import ToolDef, ToolResult
from service.intake.calls import build_tool_call, read_result_content
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_input
from service.intake.parts import add_part, take_call
from service.intake.speech import Sink, Speech
from service.intake.tools import read_tools

_IDLE = frozenset(
    [
        *("instruction", "instruction-delta", "instruction-digest", "instruction-baseline"),
        *("tool-availability-delta", "model-settings-delta", "cache-point"),
    ]
)
"""Kinds of parts that carry nothing that is scored."""


def _read(record: Cursor) -> Tools:
    last = ""
    for message in record.items("messages", of="a message"):
        instructions = message.text("instructions")
        if instructions and instructions != last:
            record.out.say("system", instructions)
            last = instructions
        kind = message.text("kind")
        if kind == "response":
            speech = Speech(record.out)
            for part in message.parts("parts"):
                _read_response_part(speech, part)
            speech.end()
            record.out.end_reply(message.members, message.path)
        elif kind == "request":
            for part in message.parts("parts"):
                _read_request_part(part)
        else:
            message.leave("a message of an unknown kind", holds="text")
    return read_tools(record.take("tools"))


def _read_response_part(speech: Speech, part: Cursor) -> None:
    kind = part.text("part_kind")
    if kind == "builtin-tool-call":
        _read_hosted_call(speech, part)
    elif kind == "builtin-tool-return":
        _read_hosted_return(speech, part)
    elif kind == "speech":
        speech.add_text(part.text("transcript", "content"))
    elif kind in _IDLE:
        part.leave("a part")
    else:
        add_part(speech, part)


def _read_hosted_call(sink: Sink, part: Cursor) -> None:
    args = find_object(part.raw if isinstance(part.raw, dict) else {}, "args")
    if args.get("action") == "list_tools":
        part.drop()
        return
    call = take_call(part)
    if args.get("action") == "call_tool":
        call = build_tool_call(call.id, find_text(args, "tool_name") or call.name, args.get("tool_args"))
    part.out.offer(ToolDef(call.name))
    sink.call(call)


def _read_hosted_return(sink: Sink, part: Cursor) -> None:
    content, error = part.take("content"), None
    if part.text("tool_name").startswith("mcp_server:") and isinstance(content, dict):
        if "output" not in content and "tools" in content:
            return
        error = content.get("error")
        content = content.get("output") if error is None else error
    result = ToolResult(read_result_content(content), error is not None or _has_failed(part))
    sink.add_result(part.text("tool_call_id") or None, result, path=part.path)


def _read_request_part(part: Cursor) -> None:
    kind = part.text("part_kind")
    if kind == "system-prompt":
        part.out.say("system", part.text("content"))
    elif kind == "user-prompt":
        read_input(part, "user", "content")
    elif kind == "tool-return" or (kind in ("retry-prompt", "retry-feedback") and part.peek("tool_name")):
        returned = "content" in part
        failed = _has_failed(part) or kind != "tool-return"
        result = ToolResult(read_result_content(part.take("content")), failed) if returned else None
        call_id, tool = part.text("tool_call_id"), part.text("tool_name")
        part.out.add_result(call_id or None, result, path=part.path, tool=tool or None)
    elif kind in ("retry-prompt", "retry-feedback"):
        part.out.say("system", part.text("content"))
    elif kind in _IDLE:
        part.leave("a part")
    else:
        part.leave(f"a part of the type {kind}", shown=True)


def _has_failed(part: Cursor) -> bool:
    return part.take("outcome") not in ("success", None)


def _recognise(record: JsonObject) -> bool:
    return any(
        message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list)
        for message in list_objects(record.get("messages"))
    )


FORMATS = (
    Format(
        name="pydantic_ai",
        read=_read,
        recognise=_recognise,
        score=58,
        summary="The history of a pydantic-ai agent, with the tools if they are known.",
        hint="messages of the kinds request and response",
    ),
)
