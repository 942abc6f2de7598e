"""The Responses API: `input` and `output` items, or a whole Response object as the API returned it.

Adjacent calls, and calls right after an assistant's text, were made by one message, as in Chat Completions.
"""

from __future__ import annotations

from service.core.json.members import list_objects
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending


def _read(record: Cursor) -> Tools:
    if not any(name in record for name in ("input", "output", "items")):
        raise InputError.at("", "expected at least one of input, output and items")
    tools = list_objects(record.peek("tools"))  # a function has a name of its own; a hosted tool goes by its type
    record.out.hosted = [str(one.get("type")) for one in tools if not one.keys() & {"name", "function", "custom"}]
    for name, role in (("instructions", "system"), ("input", "user"), ("output", ""), ("items", "")):
        text = record.text(name) if role else ""
        if text:
            record.out.say("system" if role == "system" else "user", text)
        else:
            read_messages(record.out, record.items(name, of="an item"))
    _note_ending(record)
    return read_tools(record.take("tools"))


def _note_ending(record: Cursor) -> None:
    """Report a response that failed or that its provider withheld."""
    if record.peek("error"):
        record.out.end_reply({"error": record.peek("error")}, "")
        return
    reason = record.child("incomplete_details").text("reason")
    status = record.text("status")
    if reason and status not in ("failed", "cancelled"):
        record.out.end_with(Ending(reason, "/incomplete_details/reason"))
    elif status:
        record.out.end_with(Ending(status, "/status"))


FORMAT = Format(
    read=_read,
    recognise=lambda record: any(name in record for name in ("output", "items", "input")),
    score=30,
    summary="A conversation in the form of the Responses API: any of `input`, `output` and `items`, in this order.",
    hint="input, output or items",
    place=2,
)
