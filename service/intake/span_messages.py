"""What a span says of a conversation: messages and tools, as OpenTelemetry's GenAI conventions and OpenInference write them.

GenAI: `gen_ai.{input,output}.messages` are messages of `parts` (`text`, `tool_call`, `tool_call_response`), as a structure
or as JSON text; each output message is another choice, of which the first is read. OpenInference:
`llm.{input,output}_messages.N.message.{role,content,tool_calls...}`, all of one reply. Content that the exporter left out
or hid is not captured: no call's arguments are `{}` for want of telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.trace import Role, ToolCall, ToolDef, ToolResult
from service.errors import InputError
from service.intake.build import result_content, tool_call
from service.intake.otlp import Given, Span, items, look_up
from service.intake.tools import read_tools

HIDDEN = "__REDACTED__"
"""What OpenInference writes in place of content that it was told to hide."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
}
_TOOL_ROLES = ("tool", "function")
_TEXTS = (None, "text", "input_text", "output_text", "refusal")

CallResult = tuple[str | None, ToolResult | None]
"""The id of a call and what it returned."""


class SpanMessage(NamedTuple):
    """One message. `role` is None where it holds nothing but results."""

    role: Role | None
    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[CallResult, ...] = ()


def read_input(span: Span) -> list[SpanMessage]:
    """The messages a model was given: instructions first. Raises InputError: a call without a name."""
    instructions = _join_texts(items(span.get("gen_ai.system_instructions")), "\n")
    given = items(span.get("gen_ai.input.messages")) or items(span.get("llm.input_messages"))
    system = [SpanMessage("system", instructions)] if instructions else []
    return [*system, *[_read_message(message, "user", span.path) for message in given]]


def read_output(span: Span) -> list[SpanMessage]:
    """The messages a model gave. Raises InputError: a call without a name."""
    given = items(span.get("gen_ai.output.messages"))[:1] or items(span.get("llm.output_messages"))
    return [_read_message(message, "assistant", span.path) for message in given]


def has_messages(span: Span) -> bool:
    """Whether the span carries anything that was said."""
    return any(
        span.get(name) is not None
        for name in ("gen_ai.input.messages", "gen_ai.output.messages", "llm.input_messages", "llm.output_messages")
    )


def _read_message(item: Given, usual: Role, path: str) -> SpanMessage:
    inner = item.get("message")
    message = inner if isinstance(inner, dict) else item
    role_name = str(message.get("role") or usual).lower()
    role = None if role_name in _TOOL_ROLES else _ROLES.get(role_name, usual)
    parts = list(_parts(message))
    results = tuple(_results(message, parts, told=role is not None))
    text = _join_texts(parts, "" if role == "assistant" else "\n") if role else ""
    calls = tuple(_calls(message, parts, path))
    alone = bool(results) and not text and not calls
    return SpanMessage(None if alone else role, text, calls, results)


def _parts(message: Given) -> Iterator[Given]:
    content = message.get("content")
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for key in ("parts", "contents", "content"):
        for part in items(message.get(key)) if not isinstance(message.get(key), str) else ():
            inner = part.get("message_content")
            yield inner if isinstance(inner, dict) else part


def _join_texts(parts: Sequence[Given], joint: str) -> str:
    texts = [part.get("content") or part.get("text") for part in parts if part.get("type") in _TEXTS]
    return joint.join([text for text in texts if isinstance(text, str) and text != HIDDEN])


def _calls(message: Given, parts: Sequence[Given], path: str) -> Iterator[ToolCall]:
    for part in parts:
        if part.get("type") == "tool_call":
            yield call_of(part.get("id"), part.get("name"), part, "arguments", path)
        elif part.get("type") == "tool_use":
            yield call_of(part.get("id"), part.get("name"), part, "input", path)
    for item in items(message.get("tool_calls")):
        call = item.get("tool_call")
        call = call if isinstance(call, dict) else item
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        yield call_of(call.get("id"), function.get("name"), function, "arguments", path)
    if isinstance(message.get("function_call_name"), str):
        yield call_of(None, message["function_call_name"], message, "function_call_arguments_json", path)


def call_of(call_id: JsonValue, name: JsonValue, holder: Given, key: str, path: str) -> ToolCall:
    """The call whose arguments stand in `holder` at `key`; not captured where nothing does, or they are hidden."""
    if not isinstance(name, str) or not name:
        raise InputError.at(path, "a tool call has a name")
    named_id = call_id if isinstance(call_id, str) and call_id else None
    if key not in holder or holder[key] == HIDDEN:
        return ToolCall(named_id, name, None, captured=False)
    return tool_call(named_id, name, holder[key])


def _results(message: Given, parts: Sequence[Given], *, told: bool) -> Iterator[CallResult]:
    """What tools returned. A message of the tool's own role returned its content, unless its parts say more."""
    answers = [part for part in parts if part.get("type") in ("tool_call_response", "tool_result")]
    for part in answers:
        call_id = part.get("id") or part.get("tool_use_id")
        keys = [key for key in ("response", "result", "content") if key in part]
        yield _id(call_id), _result(part[keys[0]]) if keys else None
    if not (answers or told):
        keys = [key for key in ("content", "contents") if message.get(key) is not None]
        content = message.get("content") if keys[:1] == ["content"] else _join_texts(parts, "\n")
        yield _id(message.get("tool_call_id") or message.get("id")), _result(content) if keys else None


def _id(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _result(content: JsonValue) -> ToolResult | None:
    return None if content == HIDDEN else ToolResult(content_of(content))


def content_of(given: JsonValue) -> JsonValue:
    """What a tool returned. Here an empty list is one, not a message without parts."""
    return given if given == [] else result_content(given)


def read_tools_on_offer(spans: Sequence[Span]) -> tuple[ToolDef, ...] | None:
    """The tools that any span says were on offer, each name once. None where none says, or a definition cannot be read.

    A catalogue with a gap would make a good call look like one of a tool that never was.
    """
    given = [(name, span.get(name)) for span in spans for name in ("gen_ai.tool.definitions", "llm.tools")]
    offers = [(name, value) for name, value in given if value is not None]
    tools: dict[str, ToolDef] = {}
    for name, value in offers:
        definitions = items(value)
        if not definitions and value not in ([], "[]"):
            return None
        for item in definitions:
            tool = _tool(_definition(item) if name == "llm.tools" else item)
            if tool is None:
                return None
            tools.setdefault(tool.name, tool)
    return tuple(tools.values()) if offers else None


def _tool(given: Given) -> ToolDef | None:
    try:
        found_tools = read_tools([given])
    except InputError:
        return None
    return found_tools[0] if found_tools else None


def _definition(item: Given) -> Given:
    """OpenInference's tool: the provider's own definition as JSON text, or the schema of its parameters beside a name."""
    inner = item.get("tool")
    tool = inner if isinstance(inner, dict) else item
    text = tool.get("json_schema")
    schema = next(iter(items(f"[{text}]" if isinstance(text, str) else [text])), None)
    if schema is None:
        return {}
    if look_up(schema, "function.name") or schema.get("name"):
        return schema
    described = {key: tool[key] for key in ("name", "description") if isinstance(tool.get(key), str)}
    return {**described, "parameters": dict(schema)}
