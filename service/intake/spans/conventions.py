"""What spans say under each convention: of what kind they are, what they stand within, and where their messages are.

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

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, read_type
from service.core.json.parsing import parse_or_none
from service.intake.messages import SPEAKERS
from service.intake.spans.exports import Span, look_up, read_items, unflatten

SpanClass = Literal["model", "tool", "wrapper", "foreign", "unknown"]
"""A model's reply, a tool's run, something around them, a span that has nothing to do with models, or unknown."""

_KINDS = (
    *("openinference.span.kind", "gen_ai.span.kind", "traceloop.span.kind", "langsmith.span.kind"),
    *("langfuse.observation.type", "gen_ai.operation.name", "llm.request.type"),
)
_MODELS = frozenset({"LLM", "CHAT", "COMPLETION", "TEXT_COMPLETION", "GENERATE_CONTENT", "GENERATION", "RESPONSES"})
_TOOLS = frozenset({"TOOL", "EXECUTE_TOOL"})
_WRAPPERS = frozenset(
    [
        *("AGENT", "CHAIN", "CREATE_AGENT", "EMBEDDING", "EMBEDDINGS", "EVALUATOR", "EVENT", "EXECUTE_TASK"),
        *("GUARDRAIL", "INVOKE_AGENT", "INVOKE_WORKFLOW", "PARSER", "PROMPT", "RERANKER", "RETRIEVAL", "RETRIEVER"),
        *("SPAN", "TASK", "WORKFLOW"),
    ]
)
"""Kinds that carry nothing scored: they repeat what the model and tool spans inside them say, or say neither."""

_GENAI_ROOTS = frozenset(
    {"gen_ai", "llm", "tool", "openinference", "traceloop", "langsmith", "langfuse", "tool_arguments"}
)
_MODEL_NAMES = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "gen_ai.completion")
_AGENTS = frozenset({"AGENT", "INVOKE_AGENT"})
_AGENT_NAMES = ("gen_ai.agent.name", "agent.name", "agent_name")
_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "mcp.tool.name")

_HELPER_SUFFIXES = ("._prepare_chat_with_tools",)
"""Suffixes of names of spans that claim to be a model's but only prepare its request."""


def read_kind(span: Span) -> str:
    """Return the kind that the span itself states, in capitals; "" if it states none."""
    return next((value.upper() for name in _KINDS if isinstance(value := span.get(name), str)), "")


def classify_span(span: Span) -> SpanClass:
    """Classify a span: by its kind, else by attributes that only one class of spans has."""
    kind = read_kind(span)
    if kind in _TOOLS or read_tool_name(span) is not None:
        return "tool"
    if kind in _MODELS:
        return "wrapper" if span.name.endswith(_HELPER_SUFFIXES) else "model"
    if kind:
        return "wrapper" if kind in _WRAPPERS else "unknown"
    if any(span.get(name) is not None for name in _MODEL_NAMES):
        return "model"
    return "wrapper" if is_genai_span(span) else "foreign"


def is_genai_span(span: Span) -> bool:
    """Whether a span has an attribute of a model or a tool, or a model's event."""
    known = span.attributes.keys() & _GENAI_ROOTS or any(event.name.startswith("gen_ai.") for event in span.events)
    return bool(known) or read_tool_name(span) is not None


def read_tool_name(span: Span) -> str | None:
    """Return the name of the tool that a span ran; None if it ran none.

    A span with nothing but a kind names its tool in the span's name: `execute_tool f`, `f.__call__` or `f`.
    """
    return _read_name(span, _TOOL_NAMES, "Function: {name}", _TOOLS, ("execute_tool ", ".__call__"))


def read_agent(span: Span) -> str | None:
    """Return the name of the agent that a span is of, if the span itself states it.

    A span with nothing but a kind names its agent in the span's name: `invoke_agent a`, `a.agent` or `a`.
    """
    if read_kind(span) == "CREATE_AGENT":
        return None
    return _read_name(span, _AGENT_NAMES, "Agent run: {name!r}", _AGENTS, ("invoke_agent ", ".agent"))


def _read_name(
    span: Span, names: Sequence[str], template: str, kinds: frozenset[str], around: tuple[str, str]
) -> str | None:
    """Return a name: by attribute, under Logfire's `template`, or in a span of one of the `kinds`, without what is `around`."""
    if named := next((value for name in names if (value := as_text(span.get(name)))), None):
        return named
    if look_up(span.attributes, "logfire.msg_template") == template:
        return as_text(span.get("name"))
    if read_kind(span) not in kinds:
        return None
    named = as_text(span.get("traceloop.entity.name"))
    return named or span.name.removeprefix(around[0]).removesuffix(around[1]) or None


def is_copy(span: Span) -> bool:
    """Whether a span was made up by its exporter, or announces a span that follows."""
    made_up = str(span.get("tool.synthesized") or "false").lower() not in ("false", "0")
    return made_up or span.get("logfire.span_type") == "pending_span"


T = TypeVar("T")


class Enclosing(Generic[T]):
    """Finds the innermost of some chosen spans around a span, for all spans together in linear time; no climb is a circle.

    `chosen`: what stands for each, by span id.
    """

    def __init__(self, spans: Iterable[Span], chosen: Mapping[str, T]) -> None:
        self._parents = {span.id: span.parent for span in spans if span.id}
        self._chosen = chosen
        self._found: dict[str | None, T | None] = {}

    def find(self, span: Span) -> T | None:
        """Return what stands for the innermost chosen span around this one."""
        path: list[str | None] = []
        here = span.parent
        while here is not None and here not in self._chosen and here not in self._found:
            path.append(here)
            here = self._parents.get(here)
        found = self._chosen.get(here or "", self._found.get(here))
        self._found.update(dict.fromkeys(path, found))
        return found


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
