"""What the APIs of providers take and give: a conversation as sent, the reply as received, and the tools on offer.

Most differ in where their parts stand, and are read by one reader. Chat Completions has no marker for a failed tool; the
optional `is_error` on a tool message serves as one. Adjacent items of the Responses API, and calls right after an assistant's
text, were made by one message.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_elements, list_objects
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, list_at, take_tools
from service.intake.messages import (
    Speaker,
    find_speaker,
    read_chunks,
    read_input,
    read_message,
    read_messages,
    read_reply_message,
)
from service.intake.texts import to_snake
from service.intake.tools import read_tools

_SAID: Mapping[str, Speaker] = {"system": "system", "messages": "user"}


def read_chat(
    record: Cursor, *reply: str, said: Mapping[str, Speaker] = _SAID, tools: str = "tools", strict: bool = False
) -> Tools:
    """Read a record of an API. Raises InputError: it has none of the members that could hold a message.

    `reply`: the members on the way to the message of the reply; `content`: the record itself is that message. `said`: the
    members that hold messages, in order, each with who speaks where it is a bare text. `strict`: an unknown role is an error.
    """
    holders = [name for name, speaker in said.items() if speaker != "system"] + [*reply[:1]]
    if not any(record.peek(name) is not None for name in holders):
        raise InputError.at("", f"expected at least one of {', '.join(holders)}")
    read_said(record, said, strict=strict)
    in_record = reply == ("content",)
    found = record if reply and (not in_record or record.peek("content")) else Cursor(None, record.out)
    for name in () if in_record else reply:
        found = found.child(name, of="a message")
    if found:
        found.take_all("role", *(("type",) if found is record else ()))
        read_reply_message(found)
    elif reply:
        add_empty_reply(record, reply[0])
    if found or "content" in record or not record.out.has_replied():
        record.out.end_reply(record.members, "")
    return take_tools(record, tools)


def add_empty_reply(record: Cursor, name: str) -> None:
    """Add the reply of a member with nothing in it, if it would follow what calls returned."""
    out = record.out
    if record.peek(name) is not None and out.is_calling() and not out.has_replied():
        out.say("assistant", "")


def read_said(record: Cursor, said: Mapping[str, Speaker], *, of: str = "a message", strict: bool = False) -> None:
    """Read the messages in these members, in order; a bare text is one of who is named."""
    for name, speaker in said.items():
        if speaker == "system":
            if record.peek(name):
                read_input(record, "system", name)
        elif text := record.text(name):
            record.out.say("user" if speaker == "user" else "assistant", text)
        else:
            read_messages(record.items(name, of=of), strict=strict)


_ITEMS: Mapping[str, Speaker] = {"instructions": "system", "input": "user", "output": "assistant", "items": "assistant"}
"""Members of the Responses API."""


@Format(score=40, signs=("messages[]", "choices[]", "chunks[]"))
def openai(record: Cursor) -> Tools:
    """A conversation of Chat Completions: `messages`, then `choices` (`sample`: which, from 0) or, streamed, `chunks`."""
    if record.peek("messages") is None and not (record.peek("choices") or record.peek("chunks")):
        raise InputError.at("/messages", "required if there are no choices")
    read_said(record, {"messages": "user"}, strict=True)
    sample = record.take("sample")
    choice = record.pick("choices", sample)
    if choice:
        read_reply_message(choice.child("message", of="a message"))
        record.out.end_reply(choice.members, choice.path)
    elif record.peek("chunks"):
        read_chunks(record, sample)
    else:
        add_empty_reply(record, "choices" if "choices" in record else "chunks")
    if record.peek("error") and not choice and not record.out.has_replied():
        record.out.end_reply({"error": record.peek("error")}, "")
    return take_tools(record, "tools", "functions")


@Format(score=30, signs=("output", "items", "input"))
def openai_responses(record: Cursor) -> Tools:
    """A conversation in the form of the Responses API: any of `input`, `output` and `items`, in this order."""
    if not any(name in record for name in ("input", "output", "items")):
        raise InputError.at("", "expected at least one of input, output and items")
    tools = list_objects(record.peek("tools"))  # a function has a name of its own; a hosted tool goes by its type
    record.out.hosted = [str(one.get("type")) for one in tools if not one.keys() & {"name", "function", "custom"}]
    read_said(record, _ITEMS, of="an item")
    if not record.peek("output"):
        add_empty_reply(record, "output")
    status, reason = record.text("status"), record.child("incomplete_details").text("reason")
    if record.peek("error"):
        record.out.end_reply({"error": record.peek("error")}, "")
    elif reason and status not in ("failed", "cancelled"):
        record.out.end_with(reason, "/incomplete_details/reason")
    elif status:
        record.out.end_with(status, "/status")
    return take_tools(record, "tools")


# Anthropic and Bedrock

_ANTHROPIC_PARTS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"}
)
_BEDROCK_PARTS = frozenset(
    {"toolUse", "toolResult", "reasoningContent", "citationsContent", "guardContent", "cachePoint"}
)
"""Parts that no other format has, by their types and by their only members."""


def _is_anthropic(record: JsonObject) -> bool:
    if record.get("type") == "message" and isinstance(record.get("content"), list):
        return True
    if not isinstance(record.get("messages"), list):
        return False
    if "system" in record or any("input_schema" in tool for tool in list_objects(record.get("tools"))):
        return True
    return not _ANTHROPIC_PARTS.isdisjoint(map(str, list_at(record, "messages/content/type")))


@Format(
    score=50,
    recognise=_is_anthropic,
    hint="messages with system, input_schema of tools or tool_use blocks, or the content of a reply",
)
def anthropic(record: Cursor) -> Tools:
    """A conversation in the form of Anthropic's Messages: `messages`, then the reply's `content`."""
    return read_chat(record, "content", strict=True)


@Format(
    score=78,
    recognise=lambda record: (
        "toolConfig" in record or "assistant" in list_at(record, "output/message/role") or _has_blocks(record)
    ),
    hint="toolConfig, or blocks such as toolUse and toolResult",
)
def bedrock(record: Cursor) -> Tools:
    """A conversation in the form of Bedrock's Converse: a request, a reply or both."""
    read_chat(record, "output", "message", tools="")
    listed = record.child("toolConfig").take("tools")
    specs: list[JsonValue] = []
    for tool in list_objects(listed):
        spec = find_object(tool, "toolSpec", "systemTool")
        schema = find_object(spec, "inputSchema")
        if spec or "cachePoint" not in tool:
            specs.append({**spec, "inputSchema": schema.get("json", schema or None)} if spec else dict(tool))
    return read_tools(None if listed is None else specs, path="/toolConfig/tools")


def _has_blocks(record: JsonObject) -> bool:
    """Whether messages have parts without a type that only Bedrock writes."""
    parts = [part for part in list_at(record, "messages/content") if isinstance(part, dict)]
    own = any(part.keys() & _BEDROCK_PARTS or list(part) == ["text"] for part in parts)
    return own and not any("type" in part for part in parts)


# Gemini

_HISTORY = ("automaticFunctionCallingHistory", "automatic_function_calling_history")


@Format(score=79, signs=("contents", "candidates[]"))
def gemini(record: Cursor) -> Tools:
    """A conversation in Gemini's form: `contents`, then the reply's `candidates`."""
    if "contents" not in record and not record.peek("candidates"):
        raise InputError.at("", "expected contents, candidates or both")
    config = record.child("config", of="the configuration")
    for holder in (record, config):
        name = next((name for name in ("systemInstruction", "system_instruction") if holder.peek(name)), None)
        if name is not None:
            instruction = holder.child(name)
            read_input(instruction or holder, "system", *(() if instruction else (name,)))
            break
    _read_contents(record)
    candidate = record.pick("candidates", record.take("sample"))
    if candidate:
        content = candidate.child("content", of="a content")
        content.take("role")
        read_reply_message(content)
        record.out.end_reply(candidate.members, candidate.path)
    else:
        add_empty_reply(record, "candidates")
        if not record.out.has_replied():
            record.out.end_reply({"error": record.take("error")}, "")
    feedback = record.child("promptFeedback", "prompt_feedback")
    if feedback.text("blockReason", "block_reason"):
        record.out.miss_reply(feedback.path, "the reply to a prompt that was blocked")
    holder = record if "tools" in record else config
    if (listed := holder.take("tools")) is None:
        return None
    tools = [
        tool
        for index, item in enumerate(list_objects(listed))
        for tool in _read_declared(item, f"{holder.path}/tools/{index}")
    ]
    return tuple({tool.name: tool for tool in tools}.values())


def _read_contents(record: Cursor) -> None:
    """Read what was said before the reply: the history, if the client made calls automatically."""
    history = next((name for name in _HISTORY if list_elements(record.peek(name))), "")
    longer = len(list_elements(record.peek(history))) >= max(1, len(list_elements(record.peek("contents"))))
    name = history if history and longer else "contents"
    if text := record.text(name):
        record.out.say("user", text)
        return
    for content in record.items(name, of="a content"):
        if "parts" not in content:
            content.leave("a content without parts", holds="text")
        else:
            speaker = find_speaker(content) or "user"
            read_message(content, "user" if speaker == "tool" else speaker)


def _read_declared(raw: JsonObject, path: str) -> list[ToolDef]:
    """Return the declared functions, and the provider's own tools by their names (`codeExecution`)."""
    own = {to_snake(name): value for name, value in raw.items()}
    schemas: list[JsonValue] = []
    for item in list_objects(own.pop("function_declarations", None)):
        one = {to_snake(name): value for name, value in item.items()}
        taken = one.get("parameters_json_schema", one.get("parameters"))
        returned = one.get("response_json_schema", one.get("response"))
        tool: dict[str, JsonValue] = {"name": one.get("name"), "description": one.get("description")}
        schemas.append(tool | {"parameters": _lower(taken), "outputSchema": _lower(returned)})
    functions = read_tools(schemas, path=f"{path}/functionDeclarations") or ()
    return [*functions, *[ToolDef(name) for name, value in own.items() if value is not None]]


def _lower(schema: JsonValue) -> JsonValue:
    """Return a schema with lower-case types: Gemini's own form says `OBJECT`. The request parser has bounded the depth."""
    if isinstance(schema, list):
        return [_lower(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _lower(value)
        for name, value in schema.items()
    }


# Ollama and Vercel's AI SDK

_VERCEL_PARTS = frozenset({"tool-call", "tool-result", "tool-error", "dynamic-tool", "step-start"})


@Format(
    score=88,
    recognise=lambda record: isinstance(record.get("message"), dict) and isinstance(record.get("done"), bool),
    hint="a message with done",
)
def ollama(record: Cursor) -> Tools:
    """A response of Ollama's `/api/chat`, with the messages and tools of its request if they are known."""
    tools = read_chat(record, "message")
    if record.peek("done") is False:
        record.out.end_with("unfinished", "/done")
    return tools


@Format(
    score=56,
    signs=("messages: role toolInvocations", "messages/parts: type"),
    recognise=lambda record: not _VERCEL_PARTS.isdisjoint(map(str, list_at(record, "messages/content/type"))),
    hint="messages with parts such as tool-call and tool-result",
)
def vercel(record: Cursor) -> Tools:
    """Messages of Vercel's AI SDK, with the tools if they are known."""
    return read_chat(record)


# Azure's evaluations

_AZURE: Mapping[str, Speaker] = {"query": "user", "response": "assistant"}


@Format(
    score=87,
    recognise=lambda record: (
        (
            isinstance(record.get("query"), list)
            or isinstance(record.get("response"), list)
            or "tool_definitions" in record
        )
        and all(isinstance(record.get(name), (str, list)) for name in _AZURE)
    ),
    hint="query with response, of messages",
)
def azure(record: Cursor) -> Tools:
    """Azure AI evaluation's `query` and `response`, with `tool_definitions`."""
    return read_chat(record, said=_AZURE, tools="tool_definitions")
