"""Find the messages of a span and read them into one form: texts, calls and results; and read the tools on offer.

`docs/formats.md` lists the conventions of instrumentations; `list_input` and `list_output` name their attributes and events.
The shared readers of messages read them, once what instrumentations put around them is taken off: OpenInference's
`message`, LangChain's `kwargs`, events, lists under dotted keys. Content that the exporter left out or hid is not captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_elements, read_type
from service.core.json.parsing import parse_or_none
from service.core.json.pointers import split_pointer
from service.core.trace import Role, ToolCall, ToolDef, ToolResult, UnreadablePart, UnreadKind
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.messages import SPEAKERS, Speaker, name_speaker, read_message
from service.intake.parts import CALLS, RESULTS, TEXTS, THOUGHTS
from service.intake.spans.exports import Span, look_up, read_items, unflatten
from service.intake.texts import read_result_content, to_snake
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import ARGUMENTS_CUT
from service.intake.unread_parts.leftovers import Leftover, Rest
from service.intake.unread_parts.suspects import list_possible_calls

HIDDEN = "__REDACTED__"
"""What OpenInference writes in place of content that it was told to hide."""

_SPEAKERS: Mapping[str, Speaker] = {"choice": "assistant", "tool-response": "tool"}
_FUNCTION = "function_call_arguments_json"
_REPEATED = "tool-call"
"""Role of a smolagents message that repeats, in words, which calls were made."""
_KNOWN = TEXTS | CALLS | RESULTS | THOUGHTS

CallResult = tuple[str | None, ToolResult | None]
"""The id of a call and what it returned."""
UnreadPart = tuple[UnreadKind, str] | Rest
"""What kind of thing an unread part is, with a description; or a part that is judged once the trace is known."""


class SpanMessage(NamedTuple):
    """One message. `role` is None if it holds only results, or nothing that is read."""

    role: Role | None
    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[CallResult, ...] = ()
    unread: tuple[UnreadPart, ...] = ()


def read_span_input(span: Span, messages: Iterable[JsonObject]) -> list[SpanMessage]:
    """Read the messages sent to a model, instructions first. Raises InputError: a call without a name."""
    raw = get_stated(span, "gen_ai.system_instructions")
    parts: list[JsonValue] = [dict(part) for part in read_items(raw)]
    given = [*_read_messages([{"role": "system", "content": parts or raw}], "system", span.path)] if raw else []
    return [*[one for one in given if one.text], *_read_messages(messages, "user", span.path)]


def read_output(span: Span, messages: Iterable[JsonObject]) -> list[SpanMessage]:
    """Read the messages that a model replied. Raises InputError: a call without a name."""
    return list(_read_messages(messages, "assistant", span.path))


def _read_messages(raw: Iterable[JsonObject], usual: Speaker, path: str) -> Iterator[SpanMessage]:
    for item in raw:
        message = _unwrap(item)
        event = get_event_name(item).removeprefix("gen_ai.").removesuffix(".message")
        role = str(message.get("role") or event or message.get("type") or usual)
        if role.lower() != _REPEATED:
            speaker = _SPEAKERS.get(role.lower()) or name_speaker(role) or "user"
            try:
                yield _read_message(message, speaker)
            except InputError as error:
                raise InputError.at(path, error.problems[0].message) from None


def _unwrap(item: JsonObject) -> JsonObject:
    """Return the message inside the wrapping of OpenInference, choices and LangChain."""
    inner = item.get("message")
    if isinstance(inner, dict):
        return _unwrap(inner)
    if isinstance(inner, str) and get_event_name(item):
        spelt = parse_or_none(inner)
        return spelt if isinstance(spelt, dict) else {**item, "content": inner}
    for key in ("kwargs", "data") if "lc" in item or "type" in item else ():
        inner = item.get(key)
        if isinstance(inner, dict):
            return {"type": item.get("type"), **inner}
    return item


def _read_message(message: JsonObject, speaker: Speaker) -> SpanMessage:
    out = Transcript()
    out.sparse = True  # missing telemetry never turns arguments into {}
    plain = _normalise(message, spoken=speaker != "tool")
    node = Cursor(plain, out, "", "a message")
    read_message(node, speaker)
    node.close()
    text = "".join([one.text for one in out.messages if one.text != HIDDEN])
    calls = tuple([drop_hidden(step.call) for step in out.steps])
    results = [(one.call_id, one.result) for one in out.results]
    results += [(out.steps[index].call.id, result) for index, result in out.answers.items()]
    shown = [(call_id, None if one and one.content == HIDDEN else one) for call_id, one in results]
    unread = tuple(_list_unread(out.left, plain)) if speaker == "assistant" else ()
    role = out.messages[-1].role if out.messages and (text or calls or not shown) else None
    return SpanMessage(role, text, calls, tuple(shown), unread)


def _normalise(message: JsonObject, *, spoken: bool) -> JsonObject:
    """Return a message with its parts in `content` and its calls in `tool_calls`, as the shared readers take them.

    `spoken`: false for a tool's message, whose content is a result, whatever it looks like.
    """
    content = message.get("content")
    content = "" if content == '""' else content  # OpenLLMetry writes an empty one as JSON
    packed = isinstance(content, str) and spoken and content.startswith("[{")
    blocks = [_name_part(part) for part in read_items(content)] if packed else []  # parts that a text spells
    blocks = blocks if all(to_snake(read_type(part)) in _KNOWN and len(part) > 1 for part in blocks) else []
    listed = read_items(message.get("parts")) or read_items(message.get("contents")) or blocks
    if not (listed or isinstance(content, str)) and spoken:
        listed = read_items(content)
    parts = [_name_part(part) for part in listed]
    texts = [part for part in parts if read_type(part) in TEXTS and (part.get("text") or part.get("content"))]
    if isinstance(content, str) and not blocks and not texts:
        parts = [{"type": "text", "text": content}, *parts] if parts else []
    plain = {name: value for name, value in message.items() if name not in ("parts", "contents", "content")}
    if parts or "content" in message:
        plain["content"] = [dict(part) for part in parts] if parts else content
    for name in ("tool_calls", "invalid_tool_calls"):
        if name in plain:
            plain[name] = [dict(find_object(one, "tool_call") or one) for one in read_items(plain[name])]
    if isinstance(message.get("function_call_name"), str):
        given = {"arguments": message[_FUNCTION]} if _FUNCTION in message else {}
        plain["function_call"] = {"name": message["function_call_name"], **given}
    return plain


def _name_part(part: JsonObject) -> JsonObject:
    """Return a part with its type: Bedrock's blocks have the type as their key, and one that names none is a text."""
    part = find_object(part, "message_content") or part
    if len(part) == 1 and "type" not in part:
        ((name, inner),) = part.items()
        if isinstance(inner, dict):
            part = {**inner, "type": name}
    if "type" not in part and isinstance(part.get("text") or part.get("content"), str):
        return {**part, "type": "text"}
    return part


def _list_unread(left: Iterable[Leftover], message: JsonObject) -> Iterator[UnreadPart]:
    """Iterate over what a reply holds besides what is read; calls in it are looked for in the whole span."""
    for one in left:
        if isinstance(one, Rest):
            if one.path.startswith("/content"):
                yield one._replace(calls=False)
        elif isinstance(one, UnreadablePart) and one.kind != "other":
            here: JsonValue = dict(message)
            for token in split_pointer(one.path):
                here = list_elements(here)[int(token)] if token.isdecimal() else find_object({"": here}, "").get(token)
            if one.kind != "call" or not any(list_possible_calls(here, one.path)):
                yield one.kind, one.reason.removesuffix(" is not read")
    content = message.get("content")
    if HIDDEN in (content, *[part.get("text", part.get("content")) for part in read_items(content)]):
        yield "text", "a text that was hidden"


def drop_hidden(call: ToolCall) -> ToolCall:
    """Return the call without arguments that the exporter left out or hid, or that its limit cut."""
    raw = call.raw
    cut = bool(call.problem) and isinstance(raw, str) and raw.lstrip().startswith('{"') and raw.rstrip()[-1:] != "}"
    problem = ARGUMENTS_CUT if cut else None
    return replace(call, arguments=None, raw=None, problem=problem, captured=False) if cut or raw == HIDDEN else call


def read_content(raw: JsonValue) -> JsonValue:
    """Read what a tool returned. An empty list is a result here, not a message without parts."""
    return raw if raw == [] else read_result_content(raw)


_CATALOGUES = (
    *("gen_ai.tool.definitions", "llm.tools", "llm.request.functions", "model_request_parameters.function_tools"),
    *("request_data.tools", "langfuse.observation.input.tools", "response.tools"),
)
"""Attributes that list the tools on offer; some are objects as JSON text."""


def read_tools_on_offer(spans: Sequence[Span]) -> tuple[ToolDef, ...] | None:
    """Collect the tools that any span lists, each name once. None if no span lists any, or a definition is unreadable.

    A catalogue with a gap would make a good call look like a call of an unknown tool.
    """
    tools: dict[str, ToolDef] = {}
    stated = False
    for raw in [raw for span in spans for raw in _list_catalogues(span)]:
        listed = read_items(raw)
        if not listed and raw not in ([], "[]"):
            return None
        stated = True
        try:
            read = [tool for item in listed for tool in read_tools([_read_definition(item)]) or ()]
        except InputError:
            return None
        for tool in read:
            tools.setdefault(tool.name, tool)
    return tuple(tools.values()) if stated else None


def _list_catalogues(span: Span) -> Iterator[JsonValue]:
    for name in _CATALOGUES:
        holder, _, inner = name.rpartition(".")
        raw = get_stated(span, name)
        if (
            raw is None
            and isinstance(packed := span.get(holder), str)
            and isinstance(spelt := parse_or_none(packed), dict)
        ):
            raw = spelt.get(inner)
        if raw is not None:
            yield raw


def _read_definition(item: JsonObject) -> JsonObject:
    """Return a tool's definition: the provider's own, as JSON text or with a schema as such, or a schema beside a name."""
    tool = find_object(item, "tool") or item
    text = tool.get("json_schema")
    if "tool" in item or text is not None:
        schema = next(iter(read_items(f"[{text}]" if isinstance(text, str) else [text])), None)
        if schema is None or look_up(schema, "function.name") or schema.get("name"):
            return schema or {}
        described = {name: tool[name] for name in ("name", "description") if isinstance(tool.get(name), str)}
        return {**described, "parameters": dict(schema)}
    raw = item.get("parameters", item.get("parameters_json_schema"))
    spelt = find_object({"": parse_or_none(raw)}, "") if isinstance(raw, str) else raw
    return {**item, "parameters": spelt}


_INPUTS = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "langfuse.observation.input")
_OUTPUTS = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "langfuse.observation.output")
_WHOLE = ("pydantic_ai.all_messages", "all_messages_events")
_DETAILS = "gen_ai.client.inference.operation.details"
_CHOICE = "gen_ai.choice"
_ENCLOSING = ("messages", "message", "generations", "choices", "output", "outputs")
_CONTENTS = frozenset({"content", "contents", "tool_calls", "parts"})
SOURCES = (*_INPUTS, *_OUTPUTS, *_WHOLE, "events", "input", "output", "request_data", "response_data")
"""Attributes that may hold messages."""
_MAX_DEPTH = 8
_NONE: list[JsonObject] = []


def list_input(span: Span) -> list[JsonObject]:
    """Return the messages sent to a model, unparsed."""
    if found := _find_first([span.get(name) for name in _INPUTS]):
        return found
    if events := _list_events(span):
        return _split_replies(events)[0]
    sources = [_get(span, _DETAILS, "gen_ai.input.messages"), _get(span, "gen_ai.content.prompt", "gen_ai.prompt")]
    return _find_first([*sources, *[span.get(name) for name in ("input", "request_data.messages", *_WHOLE)]])


def list_output(span: Span) -> list[JsonObject]:
    """Return the messages that a model replied, unparsed: the first of several choices."""
    if found := find_messages(span.get("gen_ai.output.messages")):
        return _first_choice(span, found)
    if found := _find_first([span.get(name) for name in _OUTPUTS[1:]]):
        return found
    if events := _list_events(span):
        return _split_replies(events)[1]
    if found := find_messages(_get(span, _DETAILS, "gen_ai.output.messages")):
        return _first_choice(span, found)
    found = find_messages(_get(span, "gen_ai.content.completion", "gen_ai.completion"))[:1]
    return found or _find_first([span.get("output"), span.get("response_data.message")])


def _find_first(sources: Sequence[JsonValue]) -> list[JsonObject]:
    return next((found for raw in sources if (found := find_messages(raw))), _NONE)


def get_stated(span: Span, name: str) -> JsonValue:
    """Return what OTel GenAI keeps beside the messages: an attribute of the span, or of its event with the details."""
    return span.get(name) or _get(span, _DETAILS, name)


def find_messages(raw: JsonValue, depth: int = 0) -> list[JsonObject]:
    """Find the messages in a framework's recorded input or output: JSON text, nested lists, objects around them.

    >>> find_messages('{"messages": [[{"role": "user", "content": "Hi"}]]}')
    [{'role': 'user', 'content': 'Hi'}]
    """
    value = parse_or_none(raw) if isinstance(raw, str) and not depth else raw
    if depth > _MAX_DEPTH or not isinstance(value, (dict, list)):
        return []
    if isinstance(value, list):
        return [message for item in value for message in find_messages(item, depth + 1)]
    tree = unflatten(value)
    if is_message(tree):
        return [tree]
    if indexed := read_items(value):
        return [message for item in indexed for message in find_messages(dict(item), depth + 1)]
    return next((found for key in _ENCLOSING if (found := find_messages(tree.get(key), depth + 1))), _NONE)


def is_message(raw: JsonObject) -> bool:
    """Whether an object is a message: it names its speaker, or has a message's parts."""
    inner = raw.get("message")
    if isinstance(inner, dict):
        return is_message(inner) or not inner.keys().isdisjoint(_CONTENTS)
    if isinstance(raw.get("role"), str) or get_event_name(raw) or isinstance(raw.get("parts"), list):
        return True
    if "lc" in raw:
        return isinstance(raw.get("kwargs"), dict)
    return read_type(raw) in SPEAKERS and ("content" in raw or isinstance(raw.get("data"), dict))


def get_event_name(raw: JsonObject) -> str:
    """Return the name of the event that a message was; "" if it was none."""
    name = look_up(raw, "event.name")
    return name if isinstance(name, str) else ""


def _first_choice(span: Span, found: list[JsonObject]) -> list[JsonObject]:
    """Return the first of several requested choices; else all, for some write one reply as several messages."""
    count = span.get("gen_ai.request.choice.count")
    return found[:1] if isinstance(count, int) and count > 1 else found


def _list_events(span: Span) -> list[JsonObject]:
    """Return a model's events as messages: those in the attribute `events`, else those of the span."""
    listed = [event for event in read_items(span.get("events")) if get_event_name(event)]
    if listed:
        return listed
    events = [event for event in span.events if event.name.endswith(".message") or event.name == _CHOICE]
    return [{**event.attributes, "event": {"name": event.name}} for event in events]


def _split_replies(events: Sequence[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Split events into input and output: the first choice, else the assistant's last messages."""
    choices = [event for event in events if get_event_name(event) == _CHOICE]
    if choices:
        return [event for event in events if get_event_name(event) != _CHOICE], choices[:1]
    last = list(takewhile(lambda event: get_event_name(event) == "gen_ai.assistant.message", reversed(events)))
    return list(events[: len(events) - len(last)]), last[::-1]


def _get(span: Span, event: str, key: str) -> JsonValue:
    return next((one.attributes.get(key) for one in span.events if one.name == event), None)
