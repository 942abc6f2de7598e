"""Find the messages of a model span where instrumentations put them: in various attributes and events.

| convention | model input | model output |
|---|---|---|
| OTel GenAI 1.37 and later | `gen_ai.input.messages` | `gen_ai.output.messages` |
| the same as an event | `gen_ai.client.inference.operation.details` | the same event |
| OTel GenAI 1.28 to 1.36 | events `gen_ai.{system,user,assistant,tool}.message` | event `gen_ai.choice` |
| OTel GenAI 1.27 | event `gen_ai.content.prompt` | event `gen_ai.content.completion` |
| OpenInference | `llm.input_messages.N` | `llm.output_messages.N` |
| OpenLLMetry until 0.48 | `gen_ai.prompt.N` | `gen_ai.completion.N` |
| LangSmith | `gen_ai.prompt`, JSON text | `gen_ai.completion`, JSON text |
| Langfuse | `langfuse.observation.input` | `langfuse.observation.output` |
| Logfire, Pydantic AI before 1.1 | `events` without its last choice or replies | these |
| Logfire's agents | `input` | `output` |
| Logfire's clients before 4.9 | `request_data.messages` | `response_data.message` |

Agents of Pydantic AI repeat the whole conversation in `pydantic_ai.all_messages` or `all_messages_events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from pydantic import JsonValue

from service.core.json.members import JsonObject, read_type
from service.intake.spans.otlp import Span, look_up, parse_json, read_items, unflatten

_INPUTS = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "langfuse.observation.input")
_OUTPUTS = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "langfuse.observation.output")
_WHOLE = ("pydantic_ai.all_messages", "all_messages_events")
_DETAILS = "gen_ai.client.inference.operation.details"
_CHOICE = "gen_ai.choice"
_ENCLOSING = ("messages", "message", "generations", "choices", "output", "outputs")
_CONTENTS = frozenset({"content", "contents", "tool_calls", "parts"})
_SPEAKERS = frozenset({"human", "ai", "system", "tool", "function", "user", "assistant", "developer"})
"""Values of a message's `type` that are roles."""
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
    value = parse_json(raw) if isinstance(raw, str) and not depth else raw
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
    return read_type(raw) in _SPEAKERS and ("content" in raw or isinstance(raw.get("data"), dict))


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
