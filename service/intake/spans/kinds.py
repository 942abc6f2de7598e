"""Classify spans, under any of the conventions, and find what they stand within."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from service.core.json.members import as_text
from service.intake.spans.otlp import Span, look_up

SpanClass = Literal["model", "tool", "wrapper", "foreign", "unknown"]
"""A model's reply, a tool's run, something around them, a span that has nothing to do with models, or unknown."""

_KINDS = (
    "openinference.span.kind",
    "gen_ai.span.kind",
    "traceloop.span.kind",
    "langsmith.span.kind",
    "langfuse.observation.type",
    "gen_ai.operation.name",
    "llm.request.type",
)

_MODELS = frozenset({"LLM", "CHAT", "COMPLETION", "TEXT_COMPLETION", "GENERATE_CONTENT", "GENERATION", "RESPONSES"})
_TOOLS = frozenset({"TOOL", "EXECUTE_TOOL"})
_WRAPPERS = frozenset(
    [
        *(
            "AGENT",
            "CHAIN",
            "CREATE_AGENT",
            "EMBEDDING",
            "EMBEDDINGS",
            "EVALUATOR",
            "EVENT",
            "EXECUTE_TASK",
            "GUARDRAIL",
        ),
        *(
            "INVOKE_AGENT",
            "INVOKE_WORKFLOW",
            "PARSER",
            "PROMPT",
            "RERANKER",
            "RETRIEVAL",
            "RETRIEVER",
            "SPAN",
            "TASK",
            "WORKFLOW",
        ),
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
