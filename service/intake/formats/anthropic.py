"""Anthropic's Messages API: `system`, `messages` of content blocks, and `tools`, or the `content` of a reply."""

from __future__ import annotations

from service.core.json.members import JsonObject, list_objects, read_type
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_input, read_messages, read_reply_message
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    if record.peek("messages") is None and "content" not in record:
        raise InputError.at("", "expected messages, the content of a reply, or both")
    if record.peek("system") is not None:
        read_input(record, "system", "system")
    read_messages(record.out, record.items("messages", of="a message"), strict=True)
    if record.peek("content"):
        record.take("role", "type")
        read_reply_message(record)
    elif "content" in record or not record.out.has_replied():
        record.out.end_reply(record.members, "")
    return read_tools(record.take("tools"))


_OWN_TYPES = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})
"""Types of blocks that no other format has."""


def _recognise(record: JsonObject) -> bool:
    if record.get("type") == "message" and isinstance(record.get("content"), list):
        return True
    if not isinstance(record.get("messages"), list):
        return False
    if "system" in record or any("input_schema" in tool for tool in list_objects(record.get("tools"))):
        return True
    blocks = (block for message in list_objects(record["messages"]) for block in list_objects(message.get("content")))
    return any(read_type(block) in _OWN_TYPES for block in blocks)


FORMAT = Format(
    read=_read,
    recognise=_recognise,
    score=50,
    summary="A conversation in the form of Anthropic's Messages: `messages`, then the reply's `content`.",
    hint="messages with system, input_schema of tools or tool_use blocks, or the content of a reply",
    place=3,
)
