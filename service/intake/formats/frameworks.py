"""Messages as frameworks for agents keep them: LangChain, Pydantic AI, AutoGen and LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from service.core.json.members import find_object, find_text, list_elements, read_type
from service.core.trace import ToolDef, ToolResult
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, list_at, take_tools
from service.intake.messages import Speaker, find_speaker, name_speaker, read_input, read_message, read_messages
from service.intake.parts import add_part, add_result, take_call
from service.intake.texts import build_tool_call, read_result_content, read_structure


@Format(
    score=54,
    recognise=lambda record: any(map(_is_langchain, list_at(record, "messages", "values/messages"))),
    hint="messages of the types human and ai, or with lc, also in values",
)
def langchain(record: Cursor) -> Tools:
    """LangChain messages or a LangGraph state, with the tools if they are known.

    Messages are as `messages_to_dict`, `model_dump` or `dumpd` writes them; the state of a thread or a StateSnapshot has them in
    `values`. A tool returned its ToolMessage's content; the `artifact` is for the program, not the model. Calls that did not
    parse (`invalid_tool_calls`) are calls; those in `additional_kwargs` and in content blocks repeat them, and are read only if
    there are no others.
    """
    if ("messages" in record) == ("values" in record):
        raise InputError.at("", "expected either messages or a state's values that contain them")
    holder = record.child("values", of="the state") or record
    for message, speaker in _list_messages(holder):
        read_message(message, speaker)
    return take_tools(record, "tools")


def _list_messages(holder: Cursor) -> Iterator[tuple[Cursor, Speaker | None]]:
    for message in holder.items("messages", of="a message"):
        if "lc" in message:
            names = list_elements(message.take("id"))
            message.take("lc", "type")
            message.take("type")
            yield message.child("kwargs", of="a message"), name_speaker(names[-1] if names else None)
        elif isinstance(message.peek("data"), dict):
            data = message.child("data", of="a message")
            yield data, find_speaker(message) or find_speaker(data)
        else:
            yield message, find_speaker(message, "type", "role")


_KINDS = frozenset({"human", "ai", "HumanMessage", "AIMessage", "AIMessageChunk", "HumanMessageChunk"})


def _is_langchain(message: JsonValue) -> bool:
    if not isinstance(message, dict) or (message.get("lc") == 1 and "kwargs" in message):
        return isinstance(message, dict)
    if read_type(message) in _KINDS:
        return "content" in message or isinstance(message.get("data"), dict)
    return message.get("type") in ("tool", "system") and "content" in message and "role" not in message


_IDLE = frozenset(
    [
        *("instruction", "instruction-delta", "instruction-digest", "instruction-baseline"),
        *("tool-availability-delta", "model-settings-delta", "cache-point"),
    ]
)
"""Kinds of parts that carry nothing that is scored."""


@Format(score=58, signs=("messages: kind parts",))
def pydantic_ai(record: Cursor) -> Tools:
    """The history of a pydantic-ai agent, with the tools if they are known.

    It is as `ModelMessagesTypeAdapter` dumps it: requests and responses made of parts. A return failed if its `outcome` is not
    success; so did a call answered by a `retry-prompt`. A retry-prompt that names no tool comes from the framework, not the user.
    Tools of an MCP server go by their own names.
    """
    last = ""
    for message in record.items("messages", of="a message"):
        instructions = message.text("instructions")
        if instructions and instructions != last:
            record.out.say("system", instructions)
            last = instructions
        kind = message.text("kind")
        if kind == "response":
            with record.out.reply():
                for part in message.parts("parts"):
                    _read_response_part(part)
            record.out.end_reply(message.members, message.path)
        elif kind == "request":
            for part in message.parts("parts"):
                _read_request_part(part)
        else:
            message.leave("a message of an unknown kind", holds="text")
    return take_tools(record, "tools")


def _read_response_part(part: Cursor) -> None:
    kind = part.text("part_kind")
    if kind == "builtin-tool-call":
        _read_hosted_call(part)
    elif kind == "builtin-tool-return":
        _read_hosted_return(part)
    elif kind == "speech":
        part.out.add_text(part.text("transcript", "content"))
    elif kind in _IDLE:
        part.leave("a part")
    else:
        add_part(part)


def _read_hosted_call(part: Cursor) -> None:
    args = find_object(part.raw if isinstance(part.raw, dict) else {}, "args")
    if args.get("action") == "list_tools":
        part.drop()
        return
    call = take_call(part)
    if args.get("action") == "call_tool":
        call = build_tool_call(call.id, find_text(args, "tool_name") or call.name, args.get("tool_args"))
    part.out.offer(ToolDef(call.name))
    part.out.call(call)


def _read_hosted_return(part: Cursor) -> None:
    content, error = part.take("content"), None
    if part.text("tool_name").startswith("mcp_server:") and isinstance(content, dict):
        if "output" not in content and "tools" in content:
            return
        error = content.get("error")
        content = content.get("output") if error is None else error
    result = ToolResult(read_result_content(content), error is not None or _has_failed(part))
    part.out.add_result(part.text("tool_call_id") or None, result, path=part.path)


def _read_request_part(part: Cursor) -> None:
    kind = part.text("part_kind")
    if kind == "user-prompt":
        read_input(part, "user", "content")
    elif kind == "tool-return" or (kind in ("retry-prompt", "retry-feedback") and part.peek("tool_name")):
        returned = "content" in part
        failed = _has_failed(part) or kind != "tool-return"
        result = ToolResult(read_result_content(part.take("content")), failed) if returned else None
        call_id, tool = part.text("tool_call_id"), part.text("tool_name")
        part.out.add_result(call_id or None, result, path=part.path, tool=tool or None)
    elif kind in ("system-prompt", "retry-prompt", "retry-feedback"):
        part.out.say("system", part.text("content"))
    else:
        idle = kind in _IDLE
        part.leave("a part" if idle else f"a part of the type {kind}", shown=not idle)


def _has_failed(part: Cursor) -> bool:
    return part.take("outcome") not in ("success", None)


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


@Format(
    score=60,
    recognise=lambda record: (
        not _SAID.union(_RETURNED, _REPEATED, ["ToolCallRequestEvent"]).isdisjoint(
            map(str, list_at(record, "messages/type", "llm_context/messages/type"))
        )
    ),
    hint="messages with a source, of types such as TextMessage",
)
def autogen(record: Cursor) -> Tools:
    """A TaskResult of AutoGen 0.4 or later, its messages and events, or the state of an agent.

    A summary of tool calls repeats their results and is no answer of the model; so is a thought. Results belong to the calls by
    their `call_id`.
    """
    for message in (record.child("llm_context") or record).items("messages", of="a message"):
        kind, source = message.text("type"), message.text("source")
        calls = kind == "AssistantMessage" and isinstance(message.peek("content"), list)
        if kind == "ToolCallRequestEvent" or calls:
            record.out.say("assistant", "")
            for call in message.items("content", of="a call"):
                record.out.call(take_call(call), parallel=True)
        elif kind in _RETURNED:
            for result in message.items("content", of="a result"):
                add_result(result)
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
        record.out.end_with(reason, "/stop_reason")
    return None


@Format(score=91, signs=("messages/blocks: block_type", "events: tool_kwargs"))
def llama_index(record: Cursor) -> Tools:
    """Messages of LlamaIndex made of blocks, or the events of an agent's workflow.

    An agent's output lists the calls that it makes; an event of a call repeats one, an event of a result answers it. Pieces of a
    stream and the event of the end repeat outputs; an AgentInput has what the user said.
    """
    for message in record.items("messages", of="a message"):
        _read_message(message)
    for event in record.items("events", of="an event"):
        _read_event(event)
    return take_tools(record, "tools")


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
        read_messages([message])


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
    texts: list[str] = []
    for block in holder.items("blocks", of="a part"):
        if block.peek("block_type") == "text":
            block.take("block_type")
            texts.append(block.text("text"))
    return "\n".join(texts)


def _read_output(event: Cursor) -> None:
    event.out.agent = event.text("current_agent_name") or None
    response = event.child("response", of="a message")
    response.take("role")
    with event.out.reply():
        event.out.add_text(_join_text(response))
        for call in event.items("tool_calls", of="a call"):
            event.out.call(take_call(call))


def _read_result(event: Cursor) -> None:
    returned = event.child("tool_output")
    content = returned.take("raw_output")
    text = read_structure(_join_text(returned))
    returned.take_all("tool_name", "raw_input")
    result = ToolResult(text if content is None else content, returned.flag("is_error"))
    event.out.add_result(event.text("tool_id") or None, result, path=event.path, tool=event.text("tool_name"))
    event.take("tool_kwargs")
