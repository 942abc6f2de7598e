"""Read the messages of a span into one form (texts, calls, results), and the tools on offer.

Supported are the messages of OTel GenAI (`parts` of `text`, `build_tool_call`, `tool_call_response`), OpenInference
(`message.tool_calls.N.tool_call`), Chat Completions, Bedrock (`toolUse`, `toolResult`) and LangChain (`lc`, `type:
"ai"`); `sources` knows where they stand. Content that the exporter left out or hid is not captured: missing telemetry
never turns arguments into `{}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, read_type
from service.core.trace import Role, ToolCall, ToolDef, ToolResult, UnreadKind
from service.errors import InputError
from service.intake.calls import build_tool_call, read_result_content
from service.intake.spans.otlp import Span, get_leaf, look_up, parse_json, read_items
from service.intake.spans.sources import get_definitions, get_event_name, get_instructions
from service.intake.tools import read_tools
from service.intake.unread_parts.members import clip
from service.intake.unread_parts.suspects import find_calls, guess_kind

HIDDEN = "__REDACTED__"
"""What OpenInference writes in place of content that it was told to hide."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "choice": "assistant",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
}
_TOOL_ROLES = ("tool", "function", "tool-response")
_REPEATED = "tool-call"
"""Role of a smolagents message that repeats, in words, which calls were made."""
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
_CALLS: Mapping[str, str] = {"tool_call": "arguments", "tool_use": "input", "toolUse": "input"}
"""Parts that are calls, and the member with their arguments."""
_RESULTS = frozenset({"tool_call_response", "tool_result", "toolResult"})
_SILENT_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoningContent", "cachePoint"})
"""Parts of an assistant's message that are not part of what it said."""
_READ = _CALLS.keys() | _RESULTS | _SILENT_PARTS
_TEXT_MEMBERS = frozenset({"type", "text", "content"})

CallResult = tuple[str | None, ToolResult | None]
"""The id of a call and what it returned."""

UnreadPart = tuple[UnreadKind, str]
"""What kind of thing an unread part may be, and a description of it."""


class SpanMessage(NamedTuple):
    """One message. `role` is None if it holds only results, or nothing that is read."""

    role: Role | None
    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[CallResult, ...] = ()
    unread: tuple[UnreadPart, ...] = ()


def read_input(span: Span, messages: Iterable[JsonObject]) -> list[SpanMessage]:
    """Read the messages sent to a model, instructions first. Raises InputError: a call without a name."""
    raw = get_instructions(span)
    instructions = _join_texts(read_items(raw), "\n") or (raw if isinstance(raw, str) else "")
    system = [SpanMessage("system", instructions)] if instructions else []
    return [*system, *_read_messages(messages, "user", span.path)]


def read_output(span: Span, messages: Iterable[JsonObject]) -> list[SpanMessage]:
    """Read the messages that a model replied. Raises InputError: a call without a name."""
    return list(_read_messages(messages, "assistant", span.path))


def _read_messages(raw: Iterable[JsonObject], usual: Role, path: str) -> Iterator[SpanMessage]:
    for item in raw:
        message = _unwrap(item)
        role = _read_role(item, message, usual)
        if role != _REPEATED:
            yield _read_message(message, role, path)


def _unwrap(item: JsonObject) -> JsonObject:
    """Return the message inside the wrapping of OpenInference, choices and LangChain."""
    inner = item.get("message")
    if isinstance(inner, dict):
        return _unwrap(inner)
    if isinstance(inner, str) and get_event_name(item):
        spelt = parse_json(inner)
        return spelt if isinstance(spelt, dict) else {**item, "content": inner}
    for key in ("kwargs", "data") if "lc" in item or "type" in item else ():
        inner = item.get(key)
        if isinstance(inner, dict):
            return {"type": item.get("type"), **inner}
    return item


def _read_role(item: JsonObject, message: JsonObject, usual: Role) -> str:
    event = get_event_name(item).removeprefix("gen_ai.").removesuffix(".message")
    return str(message.get("role") or event or message.get("type") or usual).lower()


def _read_message(message: JsonObject, role_name: str, path: str) -> SpanMessage:
    role = None if role_name in _TOOL_ROLES else _ROLES.get(role_name, "user")
    parts = list(_list_parts(message, spoken=role is not None))
    results = tuple(_list_results(message, parts, spoken=role is not None))
    text = _join_texts(parts, "" if role == "assistant" else "\n") if role else ""
    calls = tuple(_list_distinct_calls(message, parts, path))
    unread = tuple(_list_unread_parts(parts)) if role == "assistant" else ()
    alone = bool(results) and not text and not calls
    return SpanMessage(None if alone else role, text, calls, results, unread)


def _list_parts(message: JsonObject, *, spoken: bool) -> Iterator[JsonObject]:
    """Iterate over the parts of a message.

    `spoken`: false for a tool's message, whose content is a result, whatever it looks like.
    """
    content = message.get("content")
    content = "" if content == '""' else content  # OpenLLMetry writes an empty one as JSON
    blocks = _parse_blocks(content) if isinstance(content, str) and spoken else []
    listed = read_items(message.get("parts")) or read_items(message.get("contents"))
    listed = listed or blocks or (read_items(content) if not isinstance(content, str) else [])
    parts = [_name_block(_unwrap_part(part)) for part in listed]
    if isinstance(content, str) and not blocks and not _join_texts(parts, ""):
        yield {"type": "text", "text": content}
    yield from parts


def _unwrap_part(part: JsonObject) -> JsonObject:
    inner = part.get("message_content")
    return inner if isinstance(inner, dict) else part


def _parse_blocks(text: str) -> list[JsonObject]:
    """Parse the parts that a message's text spells as JSON; none if it is ordinary text."""
    if not text.startswith("[{"):
        return []
    parts = [_name_block(part) for part in read_items(text)]
    known = _TEXTS | _CALLS.keys() | _RESULTS | _SILENT_PARTS
    return parts if all(_read_type(part) in known and len(part) > 1 for part in parts) else []


def _name_block(part: JsonObject) -> JsonObject:
    """Return a part with its type: Bedrock's blocks have the type as their key."""
    if "type" in part:
        return part
    if len(part) == 1:
        ((name, inner),) = part.items()
        if isinstance(inner, dict):
            return {**inner, "type": name}
    return {**part, "type": "text"} if isinstance(part.get("text"), str) else part


def _read_type(part: JsonObject) -> str:
    """Return the type of a part; one that names none is a text."""
    return "text" if part.get("type") is None else read_type(part)


def _join_texts(parts: Sequence[JsonObject], joint: str) -> str:
    texts = [part.get("content") or part.get("text") for part in parts if _read_type(part) in _TEXTS]
    return joint.join([text for text in texts if isinstance(text, str) and text != HIDDEN])


def _list_unread_parts(parts: Sequence[JsonObject]) -> Iterator[UnreadPart]:
    """Iterate over unread parts that are not calls, with the kind that each may be; hidden content is one."""
    for part in parts:
        kind, text = _read_type(part), part.get("content") or part.get("text")
        if kind in _TEXTS and text == HIDDEN:
            yield "text", "a text that was hidden"
        elif kind in _READ or (kind in _TEXTS and (isinstance(text, str) or part.keys() <= _TEXT_MEMBERS)):
            continue
        elif not any(find_calls(dict(part), "part")):
            yield guess_kind(kind), f"a part of the type {clip(kind)}"


def _list_distinct_calls(message: JsonObject, parts: Sequence[JsonObject], path: str) -> Iterator[ToolCall]:
    """Iterate over the calls of a message, each once: LangChain lists the calls of its parts again."""
    seen: set[tuple[str, str]] = set()
    for call in _list_calls(message, parts, path):
        key = (call.id or "", spell_call(call))
        if key not in seen or not call.id:
            yield call
        seen.add(key)


def spell_call(call: ToolCall) -> str:
    """Spell a call's name and arguments in one canonical way."""
    return json.dumps([call.name, call.raw if call.arguments is None else call.arguments], sort_keys=True)


def _list_calls(message: JsonObject, parts: Sequence[JsonObject], path: str) -> Iterator[ToolCall]:
    for part in parts:
        key = _CALLS.get(_read_type(part))
        if key is not None:
            key = "partial_json" if "partial_json" in part else key  # from a stream: its input is empty
            yield build_call(part.get("id") or part.get("toolUseId"), part.get("name"), part, key, path)
    listed = [*read_items(message.get("tool_calls")), *read_items(message.get("invalid_tool_calls"))]
    for item in listed or read_items(look_up(message, "additional_kwargs.tool_calls")):
        call = item.get("tool_call")
        call = call if isinstance(call, dict) else item
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        key = "args" if "args" in function else "arguments"
        yield build_call(call.get("id"), function.get("name"), function, key, path)
    if isinstance(message.get("function_call_name"), str):
        yield build_call(None, message["function_call_name"], message, "function_call_arguments_json", path)


def build_call(call_id: JsonValue, name: JsonValue, holder: JsonObject, key: str, path: str) -> ToolCall:
    """Build the call whose arguments stand in `holder` at `key`.

    They are not captured if the key is absent or its value hidden.
    """
    if not isinstance(name, str) or not name:
        raise InputError.at(path, "a tool call needs a name")
    if key not in holder or holder[key] == HIDDEN:
        return ToolCall(as_text(call_id), name, None, captured=False)
    raw = holder[key]
    call = build_tool_call(as_text(call_id), name, raw)
    if call.problem and isinstance(raw, str) and raw.lstrip().startswith('{"') and not raw.rstrip().endswith("}"):
        return ToolCall(as_text(call_id), name, None, captured=False)  # the exporter's limit cut it
    return call


def _list_results(message: JsonObject, parts: Sequence[JsonObject], *, spoken: bool) -> Iterator[CallResult]:
    """Iterate over tool results. A message with a tool's role returned its content, unless its parts say more."""
    answers = [part for part in parts if _read_type(part) in _RESULTS]
    for part in answers:
        call_id = part.get("id") or part.get("tool_use_id") or part.get("toolUseId")
        keys = [key for key in ("response", "result", "content") if key in part]
        yield as_text(call_id), _read_result(part[keys[0]], part) if keys else None
    if not (answers or spoken):
        keys = [key for key in ("content", "contents") if message.get(key) is not None]
        content = message.get("content") if keys[:1] == ["content"] else _join_texts(parts, "\n")
        call_id = message.get("tool_call_id") or message.get("id")
        yield as_text(call_id), _read_result(content, message) if keys else None


def _read_result(content: JsonValue, holder: JsonObject) -> ToolResult | None:
    failed = holder.get("status") == "error" or holder.get("is_error") is True
    return None if content == HIDDEN else ToolResult(read_content(content), failed)


def read_content(raw: JsonValue) -> JsonValue:
    """Read what a tool returned.

    An empty list is a result here, not a message without parts; Bedrock's blocks are parts.
    """
    if not isinstance(raw, list) or not raw:
        return raw if raw == [] else read_result_content(raw)
    blocks = [part for part in raw if isinstance(part, dict) and part.keys() in ({"text"}, {"json"})]
    if len(blocks) < len(raw):
        return read_result_content(raw)
    if len(blocks) == 1 and "json" in blocks[0]:
        return blocks[0]["json"]
    return read_result_content([{"type": "text", **block} for block in blocks])


def read_tools_on_offer(spans: Sequence[Span]) -> tuple[ToolDef, ...] | None:
    """Collect the tools that any span lists, each name once. None if no span lists any, or a definition is unreadable.

    A catalogue with a gap would make a good call look like a call of an unknown tool.
    """
    definitions: list[JsonObject] = []
    stated = False
    for span in spans:
        for raw, read in _list_catalogues(span):
            listed = read_items(raw)
            if not listed and raw not in ([], "[]"):
                return None
            stated = True
            definitions += [read(item) for item in listed]
    tools = [_read_tool(item) for item in definitions]
    known = [tool for tool in tools if tool is not None]
    if not stated or len(known) < len(tools):
        return None
    return tuple({tool.name: tool for tool in reversed(known)}[name] for name in dict.fromkeys(t.name for t in known))


def _list_catalogues(span: Span) -> Iterator[tuple[JsonValue, Callable[[JsonObject], JsonObject]]]:
    """Iterate over a span's lists of tools on offer, each with the function that normalises one entry."""
    for raw, read in (
        (get_definitions(span), _keep),
        (span.get("llm.tools"), _read_definition),
        (span.get("llm.request.functions"), _parse_parameters),
        (look_up(_parse_object(span.get("model_request_parameters")), "function_tools"), _rename_parameters),
        (look_up(_parse_object(span.get("request_data")), "tools"), _keep),
        (look_up(_parse_object(get_leaf(span, "response")), "tools"), _keep),
    ):
        if raw is not None:
            yield raw, read


def _parse_object(raw: JsonValue) -> JsonObject:
    value = parse_json(raw) if isinstance(raw, str) else raw
    return value if isinstance(value, dict) else {}


def _keep(raw: JsonObject) -> JsonObject:
    return raw


def _parse_parameters(raw: JsonObject) -> JsonObject:
    """Parse the parameters' schema, which OpenLLMetry writes as JSON text."""
    return {**raw, "parameters": dict(_parse_object(raw.get("parameters")))}


def _rename_parameters(raw: JsonObject) -> JsonObject:
    """Rename the schema of Pydantic AI's tool."""
    return {**raw, "parameters": raw.get("parameters_json_schema")}


def _read_tool(raw: JsonObject) -> ToolDef | None:
    try:
        tools = read_tools([raw])
    except InputError:
        return None
    return tools[0] if tools else None


def _read_definition(item: JsonObject) -> JsonObject:
    """Read OpenInference's tool: the provider's own definition as JSON text, or a schema beside a name."""
    inner = item.get("tool")
    tool = inner if isinstance(inner, dict) else item
    text = tool.get("json_schema")
    schema = next(iter(read_items(f"[{text}]" if isinstance(text, str) else [text])), None)
    if schema is None:
        return {}
    if look_up(schema, "function.name") or schema.get("name"):
        return schema
    described = {key: tool[key] for key in ("name", "description") if isinstance(tool.get(key), str)}
    return {**described, "parameters": dict(schema)}
