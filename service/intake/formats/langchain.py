"""LangChain messages as `messages_to_dict`, `model_dump` or `dumpd` writes them, and LangGraph states.

The state of a thread and a StateSnapshot have messages in `values`. A tool returned its ToolMessage's content; the
`artifact` is for the program, not the model. Calls that did not parse (`invalid_tool_calls`) are calls; those in
`additional_kwargs` and in content blocks repeat them, and are read only if there are no others.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.core.json.members import JsonObject, find_object, list_items, list_objects, read_type
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import Speaker, find_speaker, name_speaker, read_message
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    if ("messages" in record) == ("values" in record):
        raise InputError.at("", "expected either messages or a state's values that contain them")
    holder = record.child("values", of="the state") or record
    for message, speaker in _list_messages(holder):
        read_message(message, speaker)
    return read_tools(record.take("tools"))


def _list_messages(holder: Cursor) -> Iterator[tuple[Cursor, Speaker | None]]:
    """Iterate over messages without their wrapping, each with its speaker."""
    for message in holder.items("messages", of="a message"):
        if "lc" in message:
            names = list_items(message.take("id"))
            message.take("lc", "type")
            message.take("type")
            yield message.child("kwargs", of="a message"), name_speaker(names[-1] if names else None)
        elif isinstance(message.peek("data"), dict):
            data = message.child("data", of="a message")
            yield data, find_speaker(message) or find_speaker(data)
        else:
            yield message, find_speaker(message, "type", "role")


_KINDS = frozenset({"human", "ai", "HumanMessage", "AIMessage", "AIMessageChunk", "HumanMessageChunk"})


def _recognise(record: JsonObject) -> bool:
    holders = (record, find_object(record, "values"))
    return any(is_message(message) for holder in holders for message in list_objects(holder.get("messages")))


def is_message(raw: JsonObject) -> bool:
    """Whether an object is a message in a form that only LangChain writes."""
    if raw.get("lc") == 1 and "kwargs" in raw:
        return True
    if read_type(raw) in _KINDS:
        return "content" in raw or isinstance(raw.get("data"), dict)
    return raw.get("type") in ("tool", "system") and "content" in raw and "role" not in raw


FORMATS = (
    Format(
        name="langchain",
        read=_read,
        recognise=_recognise,
        score=54,
        summary="LangChain messages or a LangGraph state, with the tools if they are known.",
        hint="messages of the types human and ai, or with lc, also in values",
    ),
)
