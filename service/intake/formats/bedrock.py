"""Bedrock's Converse API: `messages` of content blocks with `toolConfig`, and the reply in `output`."""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_objects
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_input, read_messages, read_reply_message
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    reply = record.child("output").child("message", of="a message")
    if record.peek("messages") is None and not reply:
        raise InputError.at("", "expected messages, the message of an output, or both")
    if record.peek("system"):
        read_input(record, "system", "system")
    read_messages(record.out, record.items("messages", of="a message"))
    if reply:
        reply.take("role")
        read_reply_message(reply)
    record.out.end_reply(record.members, "")
    config = record.child("toolConfig")
    if config.peek("tools") is None:
        return None
    specs = [spec for tool in list_objects(config.take("tools")) if (spec := _read_spec(tool)) is not None]
    return read_tools(specs, path="/toolConfig/tools")


def _read_spec(tool: JsonObject) -> dict[str, JsonValue] | None:
    spec = find_object(tool, "toolSpec", "systemTool")
    if not spec:
        return None if "cachePoint" in tool else dict(tool)
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
    read=_read,
    recognise=_recognise,
    score=78,
    summary="A conversation in the form of Bedrock's Converse: a request, a reply or both.",
    hint="toolConfig, or blocks such as toolUse and toolResult",
    place=9,
)
