"""A sample of an Inspect log (`.json`, or an entry of an `.eval` archive), with its `target` as reference.

A tool failed if its message has an `error`. Long texts may stand in `attachments`. The `output` repeats the last message and
says how it ended; a `limit` or an `error` says that the sample was stopped. The `events` say again what the messages do, and
what other agents did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages
from service.intake.unread_parts.endings import Ending

_ATTACHED = "attachment://"


def _read(record: Cursor) -> Tools:
    record.out.id = f"{record.take('id')}-epoch-{record.take('epoch')}"
    record.take_all("target", "input")
    attached = find_object(record.members, "attachments")
    messages = record.take("messages")
    inner = Cursor({"messages": _attach(messages, attached) if attached else messages}, record.out)
    read_messages(record.out, inner.items("messages", of="a message"))
    for event in record.items("events", of="an event"):
        event.take("call")  # with the provider, whose answer is the event's output
        for choice in event.child("output").items("choices"):
            choice.child("message").take("content")
        if event.peek("event") in ("state", "store"):
            event.drop()
    record.take("events_data")
    output = record.child("output")
    choice = next(list_objects(output.take("choices")), None)
    if choice is not None and isinstance(reason := choice.get("stop_reason"), str):
        record.out.end_with(Ending(reason, "/output/choices/0/stop_reason"))
    output.drop()
    limit = record.child("limit")
    if limit:
        record.out.end_with(Ending(f"incomplete: the limit of {limit.text('type') or 'the sample'}", "/limit"))
    elif record.peek("error") and not record.out.has_replied():
        record.out.end_reply({"error": record.peek("error")}, "")
    return None


def _attach(value: JsonValue, attached: Mapping[str, JsonValue]) -> JsonValue:
    """Return a value with the texts that stand in the sample's attachments."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, list):
        return [_attach(item, attached) for item in value]
    return {name: _attach(item, attached) for name, item in value.items()} if isinstance(value, dict) else value


def _recognise(record: JsonObject) -> bool:
    return "epoch" in record and isinstance(record.get("messages"), list)


def _split(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the samples of a log, with their pointers; None if it is none."""
    samples = list(list_objects(record.get("samples")))
    if "eval" not in record or not any(map(_recognise, samples)):
        return None
    return [(f"/samples/{index}", sample) for index, sample in enumerate(samples)]


FORMATS = (
    Format(
        name="inspect_ai",
        read=_read,
        recognise=_recognise,
        score=89,
        summary="A sample of an Inspect log; a file with a whole log is a trace for each.",
        hint="messages with an epoch",
        members={"id": NotRequired[int | str | None]},
        split=_split,
    ),
)
