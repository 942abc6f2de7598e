"""Messages of AutoGen 0.4 and later: a TaskResult, a list of its messages and events, or what an agent's state keeps of them.

A summary of tool calls repeats their results and is no answer of the model; so is a thought. Results belong to the calls
by their `call_id`.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.core.json.members import JsonObject, as_text, find_object, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.parts import add_result, take_call
from service.intake.unread_parts.endings import Ending

_KEPT = frozenset({"UserMessage", "AssistantMessage"})
"""Messages to and from a model, in an agent's state."""
_SAID = _KEPT | {"TextMessage", "MultiModalMessage", "StructuredMessage", "StopMessage", "HandoffMessage"}
_RETURNED = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_REPEATED: Mapping[str, str] = {
    "ToolCallSummaryMessage": "a summary of results",
    "ThoughtEvent": "a thought",
    "ModelClientStreamingChunkEvent": "a piece of a stream",
    "MemoryQueryEvent": "what a memory held",
}
"""Events that say nothing new to the user."""


def _read(record: Cursor) -> Tools:
    for message in (record.child("llm_context") or record).items("messages", of="a message"):
        kind, source = message.text("type"), message.text("source")
        calls = kind == "AssistantMessage" and isinstance(message.peek("content"), list)
        if kind == "ToolCallRequestEvent" or calls:
            record.out.say("assistant", "")
            for call in message.items("content", of="a call"):
                record.out.call(take_call(call), parallel=True)
        elif kind in _RETURNED:
            for result in message.items("content", of="a result"):
                add_result(record.out, result)
        elif kind in _SAID:
            parts = message.items("content") if isinstance(message.peek("content"), list) else ()
            text = message.text("content") or "\n".join([part.text("text") or str(part.raw) for part in parts])
            record.out.say("user" if source == "user" else "assistant", text)
        else:
            message.leave(
                _REPEATED.get(kind, "a message of an unknown type"), holds="other" if kind in _REPEATED else "text"
            )
    reason = record.text("stop_reason")
    if reason and not record.out.has_replied():
        record.out.end_with(Ending(reason, "/stop_reason"))
    return None


def _recognise(record: JsonObject) -> bool:
    messages = list_objects((find_object(record, "llm_context") or record).get("messages"))
    kinds = {as_text(message.get("type")) for message in messages if "source" in message}
    return bool(kinds & (_SAID | _REPEATED.keys() | {"ToolCallRequestEvent", *_RETURNED}))


FORMATS = (
    Format(
        name="autogen",
        read=_read,
        recognise=_recognise,
        score=60,
        summary="A TaskResult of AutoGen 0.4 or later, its messages and events, or the state of an agent.",
        hint="messages with a source, of types such as TextMessage",
    ),
)
