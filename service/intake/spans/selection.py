"""Say of what kind spans are and what they stand within, select those whose messages are read, and find missing replies."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_text
from service.intake.spans.exports import Span, look_up
from service.intake.spans.messages import UnreadPart, get_event_name, list_input, list_output, read_output
from service.intake.unread_parts.endings import ENDINGS, list_missing

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


_ENDS: frozenset[JsonValue] = frozenset({"stop", "length", "max_tokens", "end_turn", "content_filter", "stop_sequence"})
"""Finish reasons of replies that call nothing."""


class MessageCarrier(NamedTuple):
    """A span and the messages it carries, unparsed."""

    span: Span
    input: Sequence[JsonObject]
    output: Sequence[JsonObject]


MissingReply = tuple[Span, tuple[UnreadPart, ...]]
"""A model span whose reply is not recorded, and what that may have been."""


def select_spans(
    spans: Sequence[Span], run_starts: Sequence[int]
) -> tuple[Sequence[MessageCarrier], Sequence[MissingReply], Sequence[Span]]:
    """Select the spans whose messages are read, the replies that none records, and all model spans, one for each reply.

    `run_starts`: start times of tool runs, sorted.

    If nested spans both carry messages, the inner one is read; spans of agents and chains are read only if no model
    span has messages.
    """
    classes = {span.order: classify_span(span) for span in spans if not is_copy(span)}
    candidates = [
        MessageCarrier(span, list_input(span), list_output(span))
        for span in spans
        if classes.get(span.order, "tool") != "tool"
    ]
    candidates = [carrier for carrier in candidates if carrier.input or carrier.output]
    others = [span for span in spans if classes.get(span.order) != "tool"]
    parents = {span.id: span.parent for span in others if span.id}
    containers = _find_above([carrier.span for carrier in candidates], parents)
    inner = [carrier for carrier in candidates if carrier.span.id not in containers]
    carriers = [carrier for carrier in inner if classes[carrier.span.order] == "model"] or inner
    models = [span for span in spans if classes.get(span.order) == "model"]
    outer = _find_above(models, parents)
    models = [span for span in models if span.id not in outer]
    unknown = [span for span in spans if classes.get(span.order) == "unknown"]
    read = {carrier.span.order for carrier in carriers}
    enclosing = Enclosing(others, {carrier.span.id: True for carrier in carriers if carrier.span.id})
    # Without messages, where neither a span inside nor one around it has any:
    alone = [
        one for one in models if not (one.order in read or one.id in containers or one.failed or enclosing.find(one))
    ]
    silent = [*alone, *_find_unanswered(carriers, models)]
    starts = [span.start for span in models]
    missing: list[MissingReply] = [(span, _guess_reply(span, starts, run_starts)) for span in silent]
    last = max(carriers, key=lambda carrier: (carrier.span.end, carrier.span.order), default=None)
    if last is not None and last.output and classes[last.span.order] == "model":
        missing += _find_broken_reply(last, starts, run_starts)
    carrying = {carrier.span.order for carrier in candidates}
    for span in [span for span in unknown if span.order not in carrying]:
        missing.append((span, (("call", f"a span of the kind {read_kind(span)}"),)))
    return carriers, missing, models


def has_content(spans: Iterable[Span]) -> bool:
    """Whether any of these spans is a model's or a tool's, is of an unknown kind, or carries messages."""
    return any(
        classify_span(span) in ("model", "tool", "unknown") or bool(list_input(span) or list_output(span))
        for span in spans
    )


def _find_above(spans: Iterable[Span], parents: Mapping[str, str | None]) -> set[str]:
    """Return the ids of all spans that contain one of these."""
    above: set[str] = set()
    for span in spans:
        here = span.parent
        while here is not None and here not in above:
            above.add(here)
            here = parents.get(here)
    return above


def _find_unanswered(carriers: Sequence[MessageCarrier], models: Sequence[Span]) -> Iterator[Span]:
    """Iterate over model spans that record a request but no reply, unless a later request repeats it."""
    orders = {span.order for span in models}
    most = -1
    for carrier in reversed(carriers):
        replies = sum(map(_is_reply, carrier.input))
        # A failed request is retried with the same messages.
        repeated = replies <= most if carrier.span.failed else replies < most
        if carrier.span.order in orders and not carrier.output and not repeated:
            yield carrier.span
        most = max(most, replies)


def _find_broken_reply(
    carrier: MessageCarrier, starts: Sequence[int], run_starts: Sequence[int]
) -> Iterator[MissingReply]:
    """Report the last reply if it failed or lacks the calls that it ended with."""
    messages = read_output(carrier.span, carrier.output)
    called = any(message.calls or message.unread for message in messages)
    reasons = [*_list_ends(carrier.span), *[reason for item in carrier.output if (reason := find_text(item, *ENDINGS))]]
    unread = next((found for reason in reasons if (found := list_missing(reason, called=called))), ())
    guessed = [one for one in _guess_reply(carrier.span, starts, run_starts, ended=False) if one[0] in unread]
    if guessed:
        yield carrier.span, tuple(guessed)


def _is_reply(message: JsonObject) -> bool:
    inner = message.get("message")
    reply = inner if isinstance(inner, dict) else message
    said = (reply.get("role"), reply.get("type"), get_event_name(message))
    return not {"assistant", "ai", "model", "gen_ai.assistant.message"}.isdisjoint(map(str, said))


def _list_ends(span: Span) -> list[str]:
    reasons = span.get("gen_ai.response.finish_reasons") or span.get("llm.finish_reason")
    listed = reasons if isinstance(reasons, list) else [reasons]
    return [reason for reason in listed if isinstance(reason, str)]


def _guess_reply(
    span: Span, starts: Sequence[int], run_starts: Sequence[int], *, ended: bool = True
) -> tuple[UnreadPart, ...]:
    """Describe what an unrecorded reply may have been.

    It may be a text, and also a call unless it ended otherwise or a tool ran next. `starts`: start times of the model
    spans. `ended`: whether to consider how it ended.
    """
    what = f"what the model said in the span {span.name!r} ({span.id or span.path})"
    reasons = _list_ends(span) if ended else []
    following = bisect_right(starts, span.start)
    before = starts[following] if following < len(starts) else None
    run = bisect_left(run_starts, span.start)
    ran = run < len(run_starts) and (before is None or run_starts[run] < before)
    if ran or (reasons and all(reason in _ENDS for reason in reasons)):
        return (("text", what),)
    return (("text", what), ("call", f"a call that the model may have made in the span {span.name!r}"))
