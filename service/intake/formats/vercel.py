"""Messages of Vercel's AI SDK: UI messages (`parts`) and model messages (`tool-call`, `tool-result`)."""

from __future__ import annotations

from service.core.json.members import JsonObject, list_items, list_objects, read_type
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    system = record.text("system")
    if system:
        record.out.say("system", system)
    read_messages(record.out, record.items("messages", of="a message"))
    return read_tools(record.take("tools"))


_OWN_TYPES = frozenset({"tool-call", "tool-result", "tool-error", "dynamic-tool", "step-start"})
"""Types of parts that no other format has."""


def _recognise(record: JsonObject) -> bool:
    return any(
        "toolInvocations" in message
        or any("type" in part for part in list_objects(message.get("parts")))
        or any(read_type(part) in _OWN_TYPES for part in list_items(message.get("content")))
        for message in list_objects(record.get("messages"))
        if "role" in message
    )


FORMAT = Format(
    read=_read,
    recognise=_recognise,
    score=56,
    summary="Messages of Vercel's AI SDK, with the tools if they are known.",
    hint="messages with parts, or with tool-call and tool-result",
    place=11,
)
