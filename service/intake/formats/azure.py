"""Azure AI evaluation: `query` and `response`, each a text or messages, with `tool_definitions`."""

from __future__ import annotations

from service.core.json.members import JsonObject
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    for name, role in (("query", "user"), ("response", "assistant")):
        text = record.text(name)
        if text:
            record.out.say("user" if role == "user" else "assistant", text)
        else:
            read_messages(record.out, record.items(name, of="a message"))
    return read_tools(record.take("tool_definitions"), path="/tool_definitions")


def _recognise(record: JsonObject) -> bool:
    halves = [record.get(name) for name in ("query", "response")]
    listed = any(isinstance(half, list) for half in halves) or "tool_definitions" in record
    return listed and all(isinstance(half, (str, list)) for half in halves)


FORMAT = Format(
    read=_read,
    recognise=_recognise,
    score=87,
    summary="Azure AI evaluation's `query` and `response`, with `tool_definitions`.",
    hint="query with response, of messages",
    place=32,
)
