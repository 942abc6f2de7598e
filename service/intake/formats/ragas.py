"""ragas samples: `user_input` is a conversation, or a question that `response` answers; `reference_tool_calls` is the gold.

Messages are LangChain's without ids: a result belongs to the call before it, in order.
"""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import find_speaker, read_message
from service.intake.parts import take_call
from service.intake.speech import Speech


def _read(record: Cursor) -> Tools:
    record.take("reference_tool_calls")
    question = record.text("user_input")
    if question:
        record.out.say("user", question)
    for message in record.items("user_input", of="a message") if not question else ():
        content = find_object(message.members, "content")
        speaker = find_speaker(message, "type", "role")
        if speaker is not None and "text" in content:  # `to_dict` puts text and calls into the content
            inner, speech = message.child("content"), Speech(record.out)
            speech.add_text(inner.text("text"))
            for call in inner.items("tool_calls", of="a call"):
                speech.call(take_call(call))
            speech.end()
        else:
            read_message(message, speaker)
    answer = record.text("response")
    if answer:
        record.out.say("assistant", answer)
    return None


def _read_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    raw = record.get("reference_tool_calls")
    if not isinstance(raw, list):
        return None
    calls: list[JsonValue] = [
        {"name": find_text(call, "name") or "", "arguments": call.get("args")} for call in list_objects(raw)
    ]
    return {"format": "calls", "calls": calls, "ordered": True}


FORMATS = (
    Format(
        name="ragas",
        read=_read,
        recognise=lambda record: isinstance(record.get("user_input"), (str, list)),
        score=73,
        summary="A ragas sample: a conversation in `user_input`, or a question with its `response`.",
        hint="user_input",
        gold=_read_gold,
    ),
)
