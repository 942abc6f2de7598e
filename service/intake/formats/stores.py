"""Logs of calls to models, as programs, proxies and tracing tools keep them: what a model was sent and replied, in any format.

Tracing tools keep a trace as entries of models, tools and chains, each with its input and output; a table says where. Entries
of models are the exchanges; those of tools are tool runs. Without any model's entry, the outermost one is the exchange: an
agent's output may be its messages. All else may repeat calls of the conversation; those that do not are unread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_text, list_objects
from service.core.json.pointers import escape_token
from service.core.trace import ToolResult
from service.errors import InputError
from service.intake.cursor import Cursor, Located
from service.intake.format import NOTHING, Exchange, Format, Tools, WrapperContents
from service.intake.texts import build_tool_call, parse_text
from service.intake.unread_parts.leftovers import Rest
from service.intake.unread_parts.suspects import clip, looks_like_call
from service.intake.wrapping import holds_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where a tracing tool keeps a trace. A path is members in an entry with "/" between them; of several, the first is read."""

    entries: tuple[str, ...]
    """Paths of the list of entries in the record, which may also be an entry itself."""
    below: str = ""
    """The member of an entry with those below it."""
    ids: tuple[str, ...] = ("id",)
    """Paths of the trace's id in the record."""
    trace: str = ""
    """The member of an entry with the trace's id."""
    kind: tuple[str, ...] = ("type",)
    kinds: frozenset[str] = frozenset()
    """The kinds of entries, in capitals; any other is noted."""
    input: tuple[str, ...] = ("input",)
    output: tuple[str, ...] = ("output",)
    tools: str = ""
    start: tuple[str, ...] = ("start_time",)
    parent: tuple[str, ...]
    name: tuple[str, ...] = ("name",)
    error: tuple[str, ...] = ("error",)
    """What is there if an entry failed."""
    failed: str = ""
    """What stands in what `error` holds if an entry failed, in capitals."""
    whole: tuple[str, ...] = ()
    """Members of entries, or of the record, that belong together, such as attributes under dotted keys."""


_MODELS = frozenset({"LLM", "CHAT_MODEL", "GENERATION"})
_TOOLS = frozenset({"TOOL", "FUNCTION"})


def read_store(record: Cursor, store: Store) -> WrapperContents:
    """Return what a trace of a store holds. Raises InputError: its entries are of several traces."""
    path = next((path for path in store.entries if record.list_nodes(path)), store.entries[0])
    nodes = [one for node in record.list_nodes(path) for one in _walk(node, store.below)]
    traces = {text: None for node in nodes if (text := as_text(node.peek(store.trace)))}
    if len(traces) > 1:
        raise InputError.at(f"/{path}", f"expected entries of one trace, not of {len(traces)}")
    held = any(record.peek(name) is not None for name in (*store.input, *store.output))
    entries = [record, *nodes] if held or not nodes else nodes
    if not nodes:
        entries = [*_walk(record, store.below)]
    own = next((text for path in store.ids if (text := as_text(_peek(record, path)))), None)
    record.out.id = own or next(iter(traces), None)
    return read_entries(record, entries, store)


def _walk(entry: Cursor, below: str) -> Iterator[Cursor]:
    yield entry
    for inner in entry.list_nodes(below) if below else ():
        yield from _walk(inner, below)


@dataclass(frozen=True, slots=True)
class _Entry:
    node: Cursor
    kind: str
    is_model: bool
    """By its kind or, without a known one, because it was sent messages."""
    exchange: Exchange
    start: tuple[float, str]
    outermost: bool
    name: str


def read_entries(record: Cursor, nodes: Sequence[Cursor], store: Store) -> WrapperContents:
    """Return what these entries of a log hold."""
    ids = {text for node in nodes if (text := find_text(node.members, "id", "span_id"))}
    entries = sorted([_read_entry(node, store, ids, record) for node in nodes], key=lambda entry: entry.start)
    models = [entry for entry in entries if entry.is_model] or [one for one in entries if one.outermost][:1]
    others = [entry.exchange for entry in entries if entry not in models]
    extra = [one.input for one in others] + [one.reply for one in others]
    whole = [node.child(name) for node in (record, *nodes) for name in store.whole if name in node]
    rest = [*nodes] if record in nodes else [record, *nodes]
    packed = [one for node in rest for one in _take_rest(node)]
    packed += [({name: node.take(name) for name in node.list_untaken()}, node.path) for node in whole]
    return WrapperContents(
        [entry.exchange for entry in models],
        [(entry.name, entry.node.path) for entry in entries if entry.kind in _TOOLS],
        [one for one in extra if one[0] is not None],
        packed,
    )


def _read_entry(node: Cursor, store: Store, ids: set[str], record: Cursor) -> _Entry:
    kind = (as_text(node.locate(*store.kind)[0]) or "").upper()
    error = node.locate(*store.error, keep=True)
    failed = bool(error[0]) and store.failed in str(error[0]).upper()
    parents = next((value for path in store.parent if (value := _peek(node, path))), None)
    start = next((value for path in store.start if (value := _peek(node, path))), "")
    tools = node.locate(store.tools) if store.tools else NOTHING
    exchange = Exchange(node.locate(*store.input), node.locate(*store.output), tools, error_path=error[1] * failed)
    unknown = (node is not record or kind != "") and (kind not in store.kinds if store.kinds else not kind)
    is_model = kind in _MODELS or (unknown and holds_messages(exchange.input[0]))
    if unknown and store.kinds and not is_model:
        node.leave("an entry of an unknown type", keep=True)
    return _Entry(
        node,
        kind,
        is_model,
        exchange,
        (float(start), "") if isinstance(start, (int, float)) else (0.0, str(start)),
        ids.isdisjoint(map(str, parents if isinstance(parents, list) else [parents])),
        as_text(node.locate(*store.name)[0]) or "",
    )


def _peek(node: Cursor, path: str) -> JsonValue:
    return node.locate(path, keep=True)[0]


def _take_rest(node: Cursor) -> list[Located]:
    """Take what was not read of an entry and return it; signs in it that something was lost are left."""
    rest: list[Located] = []
    for name in node.list_untaken():
        value, path = node.take(name), f"{node.path}/{escape_token(name)}"
        rest.append((value, path))
        if value:
            node.out.leave(Rest(value, path, f"the member {clip(name)!r}", name, calls=False))
    return rest


_LANGFUSE = Store(
    entries=("observations", "data"),
    trace="traceId",
    kinds=frozenset(
        ["SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
    ),
    start=("startTime",),
    parent=("parentObservationId",),
    error=("level",),
    failed="ERROR",
)


def _is_langfuse(record: JsonObject) -> bool:
    of_span = {"spanId", "span_id", "attributes"}
    return isinstance(record.get("observations"), list) or any(
        "traceId" in one and "input" in one and not one.keys() & of_span
        for one in (record, *list_objects(record.get("data")))
    )


@Format(score=83, recognise=_is_langfuse, hint="observations, or a traceId with input")
def langfuse(record: Cursor) -> WrapperContents:
    """A Langfuse trace with its observations, one observation, or a page of one trace's observations."""
    return read_store(record, _LANGFUSE)


_LANGSMITH = Store(
    entries=("runs",),
    below="child_runs",
    trace="trace_id",
    kind=("run_type",),
    kinds=frozenset({"CHAIN", "LLM", "TOOL", "RETRIEVER", "EMBEDDING", "PROMPT", "PARSER"}),
    input=("inputs",),
    output=("outputs",),
    tools="extra/invocation_params/tools",
    start=("start_time", "dotted_order"),
    parent=("parent_run_id",),
)


@Format(score=84, signs=("run_type", "runs: run_type"))
def langsmith(record: Cursor) -> WrapperContents:
    """A LangSmith run, or all `runs` of a trace."""
    return read_store(record, _LANGSMITH)


_MLFLOW = Store(
    entries=("data/spans",),
    ids=("info/trace_id", "info/request_id"),
    kind=("attributes/mlflow.spanType", "span_type", "type"),
    input=("attributes/mlflow.spanInputs", "inputs", "attributes/mlflow.chat.messages"),
    output=("attributes/mlflow.spanOutputs", "outputs"),
    tools="attributes/mlflow.chat.tools",
    start=("start_time_unix_nano", "start_time"),
    parent=("parent_span_id", "parent_id"),
    error=("status_code", "status"),
    failed="ERROR",
    whole=("info", "attributes"),
)


@Format(score=82, signs=("data: spans[]",))
def mlflow(record: Cursor) -> WrapperContents:
    """An MLflow trace, version 2 or 3."""
    for span in record.list_nodes("data/spans"):
        if looks_like_call(span.members):
            record.out.note_unread("call", span.path, "a span that is a call")
    return read_store(record, _MLFLOW)


_OPIK = Store(
    entries=("spans",),
    ids=("trace_id", "id"),
    trace="trace_id",
    kinds=frozenset({"GENERAL", "TOOL", "LLM", "GUARDRAIL"}),
    parent=("parent_span_id",),
    error=("error_info",),
)


@Format(
    score=85,
    recognise=lambda record: any(
        "trace_id" in one and str(one.get("type")).upper() in _OPIK.kinds and "input" in one
        for one in (record, *list_objects(record.get("spans")))
    ),
    hint="spans with a trace_id, a type such as llm, and an input",
)
def opik(record: Cursor) -> WrapperContents:
    """An Opik trace with its spans, or one span."""
    return read_store(record, _OPIK)


_BRAINTRUST = Store(
    entries=("events",),
    ids=("root_span_id",),
    trace="root_span_id",
    kind=("span_attributes/type",),
    tools="metadata/tools",
    start=("created",),
    parent=("span_parents",),
    name=("span_attributes/name",),
)


@Format(score=91, signs=("span_attributes root_span_id", "events: span_attributes root_span_id"))
def braintrust(record: Cursor) -> WrapperContents:
    """Rows of a Braintrust log: one, or those of a trace in `events`."""
    for row in record.list_nodes("events") or [record]:
        if not row.child("span_attributes"):
            row.leave("a row of an unknown type", keep=True)
        row.take("expected")
    return read_store(record, _BRAINTRUST)


_AGENTS = Store(
    entries=("lines",),
    ids=(),
    kind=("span_data/type",),
    input=("span_data/input",),
    output=("span_data/output",),
    start=("started_at",),
    parent=("parent_id",),
    name=("span_data/name",),
)
_IDLE_SPANS = frozenset(
    ["agent", "handoff", "guardrail", "custom", "mcp_tools", "task", "turn", "speech", "speech_group", "transcription"]
)
_NO_RESPONSE = "a response of which the trace holds only the id"


def _name_agents_trace(line: JsonObject) -> str | None:
    if line.get("object") == "trace.span":
        return find_text(line, "trace_id")
    return find_text(line, "id") if line.get("object") == "trace" else None


@Format(score=95, hint="lines whose object is trace or trace.span", session=_name_agents_trace)
def openai_agents(record: Cursor) -> Tools | WrapperContents:
    """A trace of the OpenAI Agents SDK: a file of its trace and spans, or `lines`.

    A span of the type `generation` holds an exchange with a model. One of the type `response` holds only its id: where the trace
    has no other, the calls and results are those of the `function` spans, and what the model said is missing.
    """
    lines = record.list_nodes("lines")
    record.out.id = next((name for line in lines if (name := _name_agents_trace(line.members))), None)
    spans = [line for line in lines if line.peek("object") == "trace.span"]
    spans.sort(key=lambda span: as_text(span.peek("started_at")) or "")
    typed = [(span, span.child("span_data", of="a span"), as_text(_peek(span, "span_data/type"))) for span in spans]
    exchanges = any(kind == "generation" for *_, kind in typed)
    for span, body, kind in typed:
        if kind == "response":
            body.drop()
            if exchanges:
                span.leave(_NO_RESPONSE, holds="text", keep=True)
            else:
                record.out.miss_reply(body.path, _NO_RESPONSE)
        elif kind == "function" and not exchanges:
            if not (name := body.text("name")):
                raise InputError.at(body.path, 'a span needs a name, such as "get_order"')
            record.out.call(build_tool_call(None, name, parse_text(body.take("input"))))
            failure = span.child("error").text("message")
            record.out.answer(ToolResult(failure or parse_text(body.take("output")), bool(failure)))
        elif kind not in _IDLE_SPANS and not exchanges:
            body.leave("a span of an unknown type", holds="call")
    return read_entries(record, spans, _AGENTS) if exchanges else None
