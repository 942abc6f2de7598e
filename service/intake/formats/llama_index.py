"""LlamaIndex: `messages` made of blocks, or the `events` of a workflow: AgentOutput, ToolCall and ToolCallResult.

An agent's output lists the calls that it makes; an event of a call repeats one, an event of a result answers it. Pieces of a
stream and the event of the end repeat outputs; an AgentInput has what the user said.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, list_objects
from service.core.trace import ToolResult
from service.intake.calls import read_structure
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages
from service.intake.parts import take_call
from service.intake.speech import Speech
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    for message in record.items("messages", of="a message"):
        _read_message(message)
    for event in record.items("events", of="an event"):
        _read_event(event)
    return read_tools(record.take("tools"))


def _read_event(event: Cursor) -> None:
    if "delta" in event or ("result" in event and event.out.has_replied()):
        event.drop()
    elif "input" in event:
        _read_input(event)
    elif "tool_output" in event:
        _read_result(event)
    elif "response" in event:
        _read_output(event)
    elif "tool_kwargs" in event:
        if str(event.peek("tool_id")) not in event.out.call_ids:
            event.out.call(take_call(event), parallel=event.out.is_calling())
        event.take_all("tool_id", "tool_name", "tool_kwargs")
    elif isinstance(event.peek("user_msg"), str):
        event.out.say("user", event.text("user_msg"))
    else:
        event.leave("an event of an unknown type")


def _read_message(message: Cursor) -> None:
    if message.peek("role") == "tool":
        message.take("role")
        call_id = message.child("additional_kwargs").text("tool_call_id") or None
        message.out.add_result(call_id, ToolResult(read_structure(_join_text(message))), path=message.path)
    else:
        read_messages(message.out, [message])


def _read_input(event: Cursor) -> None:
    """Read what a model was sent: all of it at the start, later what the user has said since."""
    messages, began = event.list_nodes("input"), bool(event.out.get_last_text()) or event.out.is_calling()
    for message in messages[-1:] if began else messages:
        if not began:
            _read_message(message)
        elif message.peek("role") == "user" and (text := _join_text(message)) != event.out.get_last_text():
            event.out.say("user", text)
    for message in messages:
        message.drop()


def _join_text(holder: Cursor) -> str:
    """Return the text of the blocks of a message."""
    texts: list[str] = []
    for block in holder.items("blocks", of="a part"):
        if block.peek("block_type") == "text":
            block.take("block_type")
            texts.append(block.text("text"))
    return "\n".join(texts)


def _read_output(event: Cursor) -> None:
    event.out.agent = event.text("current_agent_name") or None
    speech, response = Speech(event.out), event.child("response", of="a message")
    response.take("role")
    speech.add_text(_join_text(response))
    for call in event.items("tool_calls", of="a call"):
        speech.call(take_call(call))
    speech.end()


def _read_result(event: Cursor) -> None:
    returned = event.child("tool_output")
    content = returned.take("raw_output")
    text = read_structure(_join_text(returned))
    returned.take_all("tool_name", "raw_input")
    result = ToolResult(text if content is None else content, returned.flag("is_error"))
    event.out.add_result(event.text("tool_id") or None, result, path=event.path, tool=event.text("tool_name"))
    event.take("tool_kwargs")


def _recognise(record: JsonObject) -> bool:
    blocks = [
        block for message in list_objects(record.get("messages")) for block in list_objects(message.get("blocks"))
    ]
    events = list_objects(record.get("events"))
    return any("block_type" in block for block in blocks) or any("tool_kwargs" in event for event in events)


FORMATS = (
    Format(
        name="llama_index",
        read=_read,
        recognise=_recognise,
        score=91,
        summary="Messages of LlamaIndex made of blocks, or the events of an agent's workflow.",
        hint="messages with blocks of a block_type, or events with tool_kwargs",
    ),
)
