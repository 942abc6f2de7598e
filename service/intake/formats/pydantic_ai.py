"""The history of a pydantic-ai agent, as `ModelMessagesTypeAdapter` dumps it: requests and responses made of parts.

A return failed if its `outcome` is not success; so did a call answered by a `retry-prompt`. A retry-prompt that names
no tool comes from the framework, not the user. Tools of an MCP server go by their own names. Thinking stays in `raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_object, find_text, list_objects, read_type
from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.message_parts import ReplyBuilder, list_content, note_unread_part
from service.intake.shapes import OPEN, Loose, StateShape, Tools
from service.intake.tools import read_tools
from service.intake.unread_parts.members import define_members, note_unread_members, note_unread_value


@with_config(OPEN)
class PydanticAITrace(TypedDict):
    """A history, with the tools if they are known."""

    format: Literal["pydantic_ai"]
    id: NotRequired[str | None]
    messages: list[dict[str, Loose]]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


RECORD = define_members("the trace", "format id messages tools state")
MESSAGE = define_members(
    "a message",
    "kind parts instructions",
)
PART = define_members(
    "a part",
    "part_kind content transcript tool_name args tool_call_id outcome",
)
IDLE = frozenset(
    [
        *("thinking", "compaction", "instruction", "instruction-delta", "instruction-digest", "instruction-baseline"),
        *("tool-availability-delta", "model-settings-delta", "cache-point"),
    ]
)
"""Kinds of parts that carry nothing that is scored."""


def read(record: PydanticAITrace) -> Trace:
    """Read a validated record. Raises InputError: a call without a name, unusable tools."""
    transcript = Transcript()
    last_instructions: JsonValue = None
    for index, message in enumerate(record["messages"]):
        path = f"/messages/{index}"
        instructions = message.get("instructions")
        if isinstance(instructions, str) and instructions != last_instructions:
            transcript.say("system", instructions)
            last_instructions = instructions
        _read_message(transcript, message, path)
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, tools=read_tools(record.get("tools")))


def _read_message(transcript: Transcript, message: JsonObject, path: str) -> None:
    if message.get("kind") not in ("request", "response"):
        note_unread_value(transcript, dict(message), path, "a message of an unknown kind", holds="text")
        return
    speech = ReplyBuilder(transcript) if message["kind"] == "response" else None
    for index, part in enumerate(list_content(transcript, message.get("parts"), f"{path}/parts")):
        _read_part(transcript, speech, part, f"{path}/parts/{index}")
    if speech is not None:
        speech.end()
        transcript.end_reply(message, path)
    note_unread_members(transcript, message, MESSAGE, path)


def _read_part(transcript: Transcript, speech: ReplyBuilder | None, part: JsonValue, path: str) -> None:
    kind = read_type(part, "part_kind")
    if isinstance(part, dict) and speech is not None and kind in RESPONSE_READERS:
        RESPONSE_READERS[kind](transcript, speech, part, path)
        note_unread_members(transcript, part, PART, path)
    elif isinstance(part, dict) and kind in REQUEST_READERS:
        REQUEST_READERS[kind](transcript, part, path)
        note_unread_members(transcript, part, PART, path)
    elif kind in IDLE:
        note_unread_value(transcript, part, path, "a part")
    else:
        note_unread_part(transcript, part, kind, path, of_user=speech is None)


def _read_text(transcript: Transcript, speech: ReplyBuilder, part: JsonObject, path: str) -> None:  # noqa: ARG001
    speech.say(find_text(part, "content", "transcript") or "")


def _read_call(transcript: Transcript, speech: ReplyBuilder, part: JsonObject, path: str) -> None:  # noqa: ARG001
    speech.call(_build_call(part, path))


def _read_hosted_call(transcript: Transcript, speech: ReplyBuilder, part: JsonObject, path: str) -> None:
    args = find_object(part, "args")
    if args.get("action") == "list_tools":
        return
    call = _build_call(part, path)
    if args.get("action") == "call_tool":
        call = build_tool_call(call.id, find_text(args, "tool_name") or call.name, args.get("tool_args"))
    transcript.offer(ToolDef(call.name))
    speech.call(call)


def _read_hosted_return(transcript: Transcript, speech: ReplyBuilder, part: JsonObject, path: str) -> None:  # noqa: ARG001
    content = part.get("content")
    error = None
    if (find_text(part, "tool_name") or "").startswith("mcp_server:") and isinstance(content, dict):
        if "output" not in content and "tools" in content:
            return
        error = content.get("error")
        content = content.get("output") if error is None else error
    result = ToolResult(read_result_content(content), error is not None or _has_failed(part))
    speech.add_result(find_text(part, "tool_call_id"), result, path=path)


RESPONSE_READERS: Mapping[str, Callable[[Transcript, ReplyBuilder, JsonObject, str], None]] = {
    "text": _read_text,
    "speech": _read_text,
    "tool-call": _read_call,
    "builtin-tool-call": _read_hosted_call,
    "builtin-tool-return": _read_hosted_return,
}
"""Readers of a response's parts, by kind."""


def _read_system(transcript: Transcript, part: JsonObject, path: str) -> None:  # noqa: ARG001
    transcript.say("system", find_text(part, "content") or "")


def _read_user(transcript: Transcript, part: JsonObject, path: str) -> None:
    content = part.get("content")
    texts: list[str] = []
    for index, item in enumerate(list_content(transcript, content, f"{path}/content")):
        text = find_text(item, "content", "text") if isinstance(item, dict) and _is_text(item) else item
        if isinstance(text, str):
            texts.append(text)
        if isinstance(text, str) or (isinstance(item, dict) and read_type(item, "kind") in IDLE):
            note_unread_value(transcript, item, f"{path}/content/{index}", "a part")
        else:
            note_unread_part(transcript, item, read_type(item, "kind"), f"{path}/content/{index}", of_user=True)
    transcript.say("user", "\n".join(texts))


def _is_text(item: JsonObject) -> bool:
    return item.get("kind") == "text-content" or item.get("type") == "text"


def _read_return(transcript: Transcript, part: JsonObject, path: str) -> None:
    result = ToolResult(read_result_content(part["content"]), _has_failed(part)) if "content" in part else None
    transcript.add_result(find_text(part, "tool_call_id"), result, path=path, tool=find_text(part, "tool_name"))


def _read_retry(transcript: Transcript, part: JsonObject, path: str) -> None:
    content = part.get("content")
    if find_text(part, "tool_name"):
        result = ToolResult(read_result_content(content), True)
        transcript.add_result(find_text(part, "tool_call_id"), result, path=path, tool=find_text(part, "tool_name"))
    else:
        transcript.say("system", content if isinstance(content, str) else "")


REQUEST_READERS: Mapping[str, Callable[[Transcript, JsonObject, str], None]] = {
    "system-prompt": _read_system,
    "user-prompt": _read_user,
    "tool-return": _read_return,
    "retry-prompt": _read_retry,
    "retry-feedback": _read_retry,
}
"""Readers of a request's parts, by kind."""


def _has_failed(part: JsonObject) -> bool:
    return part.get("outcome") not in ("success", None)


def _build_call(part: JsonObject, path: str) -> ToolCall:
    name = find_text(part, "tool_name")
    if name is None:
        raise InputError.at(path, "a call needs a tool_name")
    return build_tool_call(find_text(part, "tool_call_id"), name, part.get("args"))


def _recognise(record: JsonObject) -> bool:
    return any(
        message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list)
        for message in list_objects(record.get("messages"))
    )


FORMAT = Format(PydanticAITrace, read, _recognise, rank=42, hint="messages of the kinds request and response", place=12)
