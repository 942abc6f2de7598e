"""Ollama's `/api/chat`: the `messages` and `tools` of the request beside the `message` of the response, or that alone.

There are no ids: a tool's message names its tool in `tool_name`. `done` is false for a piece of a stream.
"""

from __future__ import annotations

from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages, read_reply_message
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending


def _read(record: Cursor) -> Tools:
    read_messages(record.out, record.items("messages", of="a message"))
    reply = record.child("message", of="a message")
    if reply:
        reply.take("role")
        read_reply_message(reply)
    if record.peek("done") is False:
        record.out.end_with(Ending("unfinished", "/done"))
    record.out.end_reply(record.members, "")
    return read_tools(record.take("tools"))


FORMAT = Format(
    read=_read,
    recognise=lambda record: isinstance(record.get("message"), dict) and isinstance(record.get("done"), bool),
    score=88,
    summary="A response of Ollama's `/api/chat`, with the messages and tools of its request if they are known.",
    hint="a message with done",
    place=37,
)
