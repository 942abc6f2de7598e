"""Bedrock's Converse API: `messages` of content blocks with `toolConfig`, and the reply in `output`.

A result of one JSON part is that JSON; one of texts only is their text; others stay parts. Reasoning stays in `raw`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, cast

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_object, find_text, list_objects
from service.core.json.pointers import escape_token
from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.message_parts import ReplyBuilder, list_content, note_unread_part
from service.intake.shapes import OPEN, Loose, StateShape
from service.intake.tools import read_tools
from service.intake.unread_parts.members import Members, define_members, note_unread_members, note_unread_value
from service.intake.unread_parts.suspects import looks_like_call


@with_config(OPEN)
class BedrockTrace(TypedDict):
    """A conversation in the form of Converse: a request, a reply or both."""

    format: Literal["bedrock"]
    id: NotRequired[str | None]
    messages: NotRequired[list[dict[str, Loose]]]
    output: NotRequired[dict[str, Loose] | None]
    state: NotRequired[StateShape | None]


_IDLE_BLOCKS = frozenset({"reasoningContent", "cachePoint"})
"""Blocks that carry nothing that is scored."""
RECORD = define_members("the trace", "format id state messages system toolConfig output")
MESSAGE = define_members("a message", "role content")
USER_BLOCK = define_members("a block", "text toolResult citationsContent")
ASSISTANT_BLOCK = define_members("a block", "text toolUse toolResult citationsContent")
USE = define_members("a toolUse", "toolUseId name input type")
RESULT = define_members("a toolResult", "toolUseId content status")
OUTPUT = define_members("the output", "message")


def read(record: BedrockTrace) -> Trace:
    """Read a validated record. Raises InputError: no messages and no reply, a call without a name, unusable tools."""
    raw = cast("dict[str, JsonValue]", record)  # a validated record is JSON
    output = find_object(raw, "output")
    reply = find_object(output, "message")
    if "messages" not in raw and not reply:
        raise InputError.at("", "expected messages, the message of an output, or both")
    transcript = Transcript()
    system = [text for part in list_objects(raw.get("system")) if (text := find_text(part, "text"))]
    if system:
        transcript.say("system", "\n".join(system))
    for index, message in enumerate(list_objects(raw.get("messages"))):
        _read_message(transcript, message, f"/messages/{index}")
    if reply:
        _read_message(transcript, {**reply, "role": "assistant"}, "/output/message")
    transcript.end_reply(raw, "")
    note_unread_members(transcript, output, OUTPUT, "/output")
    note_unread_members(transcript, raw, RECORD, "")
    return transcript.build_trace(record, tools=_read_tools(raw))


def _read_message(transcript: Transcript, message: JsonObject, path: str) -> None:
    content, role = message.get("content"), message.get("role")
    if role not in ("user", "assistant"):
        note_unread_value(transcript, message, path, "a message of an unknown role", holds="text")
        return
    blocks: JsonValue = [{"text": content}] if isinstance(content, str) else content
    parts = list_content(transcript, blocks, f"{path}/content")
    read_parts = _read_reply if role == "assistant" else _read_input_message
    read_parts(transcript, parts, f"{path}/content")
    note_unread_members(transcript, message, MESSAGE, path)


def _read_input_message(transcript: Transcript, parts: list[JsonValue], path: str) -> None:
    """Read a user's message: results, and what was said. A message of nothing but results is no turn."""
    texts: list[str] = []
    answered = False
    for index, part in enumerate(parts):
        result = _find_below(part, "toolResult")
        text = _read_text(part)
        if result is not None:
            _read_result(transcript, result, f"{path}/{index}/toolResult")
            answered = True
        elif text is not None:
            texts.append(text)
        _note_block(transcript, part, USER_BLOCK, f"{path}/{index}")
    if texts or not answered:
        transcript.say("user", "\n".join(texts))


def _read_reply(transcript: Transcript, parts: list[JsonValue], path: str) -> None:
    speech = ReplyBuilder(transcript)
    for index, part in enumerate(parts):
        use, result, text = _find_below(part, "toolUse"), _find_below(part, "toolResult"), _read_text(part)
        if use is not None:
            speech.call(_read_call(transcript, use, f"{path}/{index}/toolUse"))
        elif result is not None:
            speech.cut()
            _read_result(transcript, result, f"{path}/{index}/toolResult")
        elif text is not None:
            speech.say(text)
        _note_block(transcript, part, ASSISTANT_BLOCK, f"{path}/{index}")
    speech.end()


def _note_block(transcript: Transcript, part: JsonValue, members: Members, path: str) -> None:
    """Report what a block holds beyond what is read. A block is named by its only member and has no type."""
    if not isinstance(part, dict) or "type" in part or looks_like_call(part):
        note_unread_part(transcript, part, "?", path, of_user=members is USER_BLOCK)
        return
    note_unread_value(transcript, part.get("citationsContent"), f"{path}/citationsContent", "a citation")
    for name, value in part.items():
        if name not in members.read | _IDLE_BLOCKS:
            note_unread_part(transcript, value, name, f"{path}/{escape_token(name)}", of_user=members is USER_BLOCK)


def _find_below(part: JsonValue, name: str) -> JsonObject | None:
    inner = part.get(name) if isinstance(part, dict) else None
    return inner if isinstance(inner, dict) else None


def _read_text(part: JsonValue) -> str | None:
    """Return what a block says; a citation is a piece of text beside its sources."""
    if not isinstance(part, dict):
        return None
    cited = _find_below(part, "citationsContent") or {}
    pieces = [text for item in list_objects(cited.get("content")) if (text := find_text(item, "text"))]
    text = part.get("text")
    return text if isinstance(text, str) else "".join(pieces) or None


def _read_call(transcript: Transcript, use: JsonObject, path: str) -> ToolCall:
    name = find_text(use, "name")
    if name is None:
        raise InputError.at(path, "a toolUse needs a name")
    note_unread_members(transcript, use, USE, path)
    if use.get("type") == "server_tool_use":
        transcript.offer(ToolDef(name))
    return build_tool_call(find_text(use, "toolUseId"), name, use.get("input"))


def _read_result(transcript: Transcript, raw: JsonObject, path: str) -> None:
    result = ToolResult(_read_blocks(raw.get("content")), raw.get("status") == "error")
    transcript.add_result(find_text(raw, "toolUseId"), result, path=path)
    note_unread_members(transcript, raw, RESULT, path)


def _read_blocks(content: JsonValue) -> JsonValue:
    parts = list(list_objects(content))
    if len(parts) == 1 and list(parts[0]) == ["json"]:
        return parts[0]["json"]
    texts = [part["text"] for part in parts if list(part) == ["text"]]
    if parts and len(texts) == len(parts):
        return read_result_content("\n".join(map(str, texts)))
    return content


def _read_tools(record: JsonObject) -> tuple[ToolDef, ...] | None:
    raw = find_object(record, "toolConfig").get("tools")
    if raw is None:
        return None
    specs: list[JsonValue] = [spec for item in list_objects(raw) if (spec := _read_spec(item)) is not None]
    return read_tools(specs, path="/toolConfig/tools")


def _read_spec(item: JsonObject) -> dict[str, JsonValue] | None:
    spec = find_object(item, "toolSpec", "systemTool")
    if not spec:
        return None if "cachePoint" in item else dict(item)
    schema = find_object(spec, "inputSchema")
    return {**spec, "inputSchema": schema.get("json", schema or None)}


_OWN_TYPES = frozenset({"toolUse", "toolResult", "reasoningContent", "citationsContent", "guardContent", "cachePoint"})
"""Kinds of blocks that no other format has."""


def _recognise(record: JsonObject) -> bool:
    if "toolConfig" in record or find_object(find_object(record, "output"), "message").get("role") == "assistant":
        return True
    messages = list_objects(record.get("messages"))
    parts = [part for message in messages for part in list_objects(message.get("content"))]
    typed = any("type" in part for part in parts)
    return not typed and any(part.keys() & _OWN_TYPES or list(part) == ["text"] for part in parts)


FORMAT = Format(
    BedrockTrace, read, _recognise, rank=22, hint="toolConfig, or blocks such as toolUse and toolResult", place=9
)
