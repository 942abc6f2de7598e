"""Read exported spans into one form: OTLP's, flat objects as SDKs write them, and documents of other systems.

Attributes become a tree: `llm.tools.0.tool.name` stands at llm, tools, "0", tool, name. Some stores write such a tree
themselves, so all forms read alike. Whatever a span lacks is None; attribute values are never changed.

Jaeger and Zipkin call attributes tags, and give times in microseconds; a tag `error` or a status tag says that a span failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_object, list_elements, list_objects
from service.core.json.parsing import parse_or_none
from service.errors import InputError, MalformedError
from service.intake.texts import Tree, unflatten

_ID_NAMES = ("spanId", "span_id", "id", "spanID")
_PARENT_NAMES = ("parentSpanId", "parent_span_id", "parent_id", "parentId")
_TRACE_NAMES = ("traceId", "trace_id", "traceID")
_START_NAMES = ("startTimeUnixNano", "start_time", "startTime", "start_time_unix_nano", "timestamp")
_END_NAMES = ("endTimeUnixNano", "end_time", "endTime", "end_time_unix_nano")


class SpanEvent(NamedTuple):
    """An event recorded within a span."""

    name: str
    attributes: JsonObject


class Span(NamedTuple):
    """One span.

    Times are nanoseconds since 1970; `path` is its pointer in the record, `order` its rank among all spans by start.

    `timed`: whether the span itself states both times.
    """

    path: str
    name: str
    id: str | None
    parent: str | None
    trace: str | None
    start: int
    end: int
    failed: bool
    message: str | None
    attributes: JsonObject
    events: tuple[SpanEvent, ...] = ()
    timed: bool = False
    order: int = 0
    dropped: int = 0
    """Attributes and events that the SDK dropped."""

    def get(self, path: str) -> JsonValue:
        """Return the attribute at a dotted path; None if it is absent or null."""
        return look_up(self.attributes, path)


def get_leaf(span: Span, path: str) -> JsonValue:
    """Return the attribute with exactly this name, ignoring a tree that longer names form below it."""
    value = span.get(path)
    return None if isinstance(value, Tree) else value


def look_up(tree: JsonObject, path: str) -> JsonValue:
    """Return the value at a dotted path of a tree; None if there is none."""
    here: JsonValue = cast("JsonValue", tree)
    for part in path.split("."):
        if not isinstance(here, dict):
            return None
        here = here.get(part)
    return here


def read_items(value: JsonValue) -> list[JsonObject]:
    """Return the objects of a list in any notation: a list, a tree with indices for keys, or either as JSON text."""
    if isinstance(value, str):
        return read_items(parse_or_none(value))
    if isinstance(value, dict):
        indices = sorted([key for key in value if key.isdecimal() and len(key) < 10], key=int)
        value = [value[index] for index in indices]
    return [unflatten(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def read_spans(spans: JsonValue, resource_spans: JsonValue) -> list[Span]:
    """Return all spans by start, ties in the given order. A span without a start takes that of the one before it.

    Raises InputError: a part of OTLP's form that is not an object or list.
    """
    places = [*_list_objects(spans, "/spans"), *list_exported(resource_spans)]
    unordered: list[Span] = []
    for path, raw in places:
        unordered.append(_read_span(path, raw, unordered[-1].start if unordered else 0))
    unordered.sort(key=lambda span: (span.start, span.end))
    return [span._replace(order=order) for order, span in enumerate(_cut_circles(_drop_copies(unordered)))]


def _drop_copies(spans: Iterable[Span]) -> Iterator[Span]:
    """Iterate over the spans, each once: an exporter that sent a batch twice leaves two copies of each."""
    kept: dict[tuple[str | None, str], Span] = {}
    for span in spans:
        twin = kept.get((span.trace, span.id)) if span.id else None
        if twin is None or twin._replace(path="") != span._replace(path=""):
            yield span
        if span.id and twin is None:
            kept[span.trace, span.id] = span


def _cut_circles(spans: Iterable[Span]) -> Iterator[Span]:
    """Iterate over the spans without the parents that close a circle: nothing stands within itself.

    Of several spans with one id, the first says what they stand within.
    """
    parents: dict[str, str | None] = {}
    tops: dict[str, str] = {}
    for span in spans:
        if not span.id or not span.parent:
            yield span
            continue
        if span.id not in parents:
            path, top = list[str](), span.parent
            while top in tops:
                path.append(top)
                top = tops[top]
            tops.update(dict.fromkeys(path, top))
            parents[span.id] = None if top == span.id else span.parent
            tops |= {} if top == span.id else {span.id: top}
        yield span._replace(parent=parents[span.id])


def read_trace_id(raw: JsonObject) -> str | None:
    """Return the id of a span's trace, without the 0x that some exporters prefix; None if it has none."""
    found = as_text(_pick_first(_with_context(raw), *_TRACE_NAMES))
    return found and found.removeprefix("0x")


def is_span(raw: JsonObject) -> bool:
    """Whether an object on its own looks like a span: it has a span's ids and a name.

    >>> is_span({"name": "f", "context": {"trace_id": "0x1", "span_id": "0x2"}}), is_span({"name": "f", "id": "1"})
    (True, False)
    """
    ids = _with_context(raw)
    return "name" in raw and read_trace_id(raw) is not None and _pick_first(ids, *_ID_NAMES) is not None


def _with_context(raw: JsonObject) -> JsonObject:
    """Merge a span with its context: SDKs write the ids there."""
    context = raw.get("context")
    return {**context, **raw} if isinstance(context, dict) else raw


def list_exported(raw: JsonValue) -> Iterator[tuple[str, JsonObject]]:
    """Iterate over the spans of OTLP's `resourceSpans` with their pointers.

    Raises InputError: a part that is not an object or list.
    """
    for path, resource in _list_objects(raw, "/resourceSpans"):
        for below, scope in _list_objects(resource.get("scopeSpans"), f"{path}/scopeSpans"):
            yield from _list_objects(scope.get("spans"), f"{below}/spans")


def _list_objects(raw: JsonValue, path: str) -> Iterator[tuple[str, JsonObject]]:
    if raw is None:
        return
    if not isinstance(raw, list):
        raise InputError.at(path, "expected a list")
    for index, item in enumerate(raw):
        if not isinstance(item, dict):
            raise InputError.at(f"{path}/{index}", "expected an object")
        yield f"{path}/{index}", item


def _read_span(path: str, raw: JsonObject, before: int) -> Span:
    ids, tagged = _with_context(raw), "tags" in raw and "attributes" not in raw
    tree = unflatten(_read_attributes(raw.get("tags" if tagged else "attributes")))
    status = raw.get("status")
    outcome: JsonObject = status if isinstance(status, dict) else {"code": status}
    code = _pick_first(outcome, "code", "status_code") or raw.get("status_code")
    failed = _is_error(code) or bool(look_up(tree, "error.type")) or look_up(tree, "tool.status") == "error"
    said = _pick_first(outcome, "message", "description") or raw.get("status_message")
    parents = [one.get("spanID") for one in list_objects(raw.get("references")) if one.get("refType") == "CHILD_OF"]
    started, ended = _read_ns(_pick_first(raw, *_START_NAMES)), _read_ns(_pick_first(raw, *_END_NAMES))
    start, took = before if started is None else started, raw.get("duration")
    if tagged:
        failed = failed or look_up(tree, "otel.status_code") == "ERROR" or tree.get("error") not in _NO_ERROR
        said = said or look_up(tree, "otel.status_description")
        ended = start + int(took * 1000) if isinstance(took, (int, float)) else ended
    noted = (list(list_objects(raw.get(name))) for name in ("events", "logs", "annotations"))
    events = next(filter(None, noted), list[JsonObject]())
    return Span(
        path=path,
        name=as_text(_pick_first(raw, "name", "operationName")) or "",
        id=as_text(_pick_first(ids, *_ID_NAMES)),
        parent=as_text(_pick_first(ids, *_PARENT_NAMES) or next(iter(parents), None)),
        trace=read_trace_id(raw),
        start=start,
        end=max(start, ended or start),
        failed=failed,
        message=as_text(said),
        attributes=tree,
        events=tuple(map(_read_event, events)),
        timed=started is not None and ended is not None,
        dropped=_count_dropped(raw) + _count_dropped(tree) + len(list_elements(raw.get("warnings"))),
    )


_NO_ERROR: tuple[JsonValue, ...] = (None, False, "false", "")
"""Values of the tag `error` of a span that did not fail."""


def _read_event(raw: JsonObject) -> SpanEvent:
    """Read an event, a log (its name is the field `event`), or an annotation (its value is the name)."""
    attributes = _read_attributes(raw.get("attributes", raw.get("fields")))
    return SpanEvent(as_text(_pick_first(raw, "name", "value") or attributes.get("event")) or "", attributes)


_DROPPED = re.compile(r"dropped_?(?:attributes|events)(?:_?count)?", re.IGNORECASE)


def _count_dropped(raw: JsonObject) -> int:
    return sum(value for name, value in raw.items() if type(value) is int and _DROPPED.fullmatch(name))


def _pick_first(raw: JsonObject, *keys: str) -> JsonValue:
    return next((raw[key] for key in keys if raw.get(key) is not None), None)


def _is_error(code: JsonValue) -> bool:
    """Whether a status code is an error: OTLP writes 2 or STATUS_CODE_ERROR, SDKs ERROR or StatusCode.ERROR.

    >>> [_is_error(code) for code in (2, "STATUS_CODE_ERROR", "StatusCode.ERROR", "error", 1, "OK", None, True)]
    [True, True, True, True, False, False, False, False]
    """
    return str(code).rpartition(".")[2].upper().removeprefix("STATUS_CODE_") in ("2", "ERROR")


def _read_ns(value: JsonValue) -> int | None:
    """Read a time as nanoseconds.

    It may be a number in whichever unit gives a present-day date, digits, [seconds, nanos], or ISO 8601.

    >>> _read_ns("1700000000000000000") == _read_ns(1700000000) == _read_ns(1700000000000) == _read_ns([1700000000, 0])
    True
    >>> (_read_ns("2023-11-14T22:13:20Z") == _read_ns("2023-11-14 22:13:20") == _read_ns(1700000000), _read_ns("soon"))
    (True, None)
    """
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value):
        return cast("int", value[0]) * 10**9 + cast("int", value[1])
    if isinstance(value, str):
        if value.isascii() and value.isdigit() and len(value) < 25:
            return int(value)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    unit = next((10**power for limit, power in ((1e11, 9), (1e14, 6), (1e17, 3)) if value < limit), 1)
    return int(value * unit)


def _read_attributes(raw: JsonValue) -> JsonObject:
    """Read attributes as an object, or as `[{key, value}]`, with OTLP's values, `{stringValue | ...}`, or plain ones."""
    if isinstance(raw, dict):
        return raw
    return {key: _read_value(pair.get("value")) for pair in list_objects(raw) if (key := as_text(pair.get("key")))}


def _read_value(raw: JsonValue) -> JsonValue:
    """Unwrap OTLP's typed value; 64-bit integers come as text."""
    if not isinstance(raw, dict):
        return raw
    kind, value = next(iter(raw.items())) if len(raw) == 1 else ("", None)
    inner = value.get("values") if isinstance(value, dict) else None
    if kind == "arrayValue":
        return [_read_value(item) for item in inner] if isinstance(inner, list) else []
    if kind == "kvlistValue":
        return cast("JsonValue", _read_attributes(inner if isinstance(inner, list) else []))
    if kind == "intValue" and isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 25:
        return int(value)
    return value


def split_export(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the spans in a document of AgentCore, Tempo or Jaeger, by trace, with pointers; None if it is none."""
    session = find_object(record, "evaluationInput").get("sessionSpans")
    if isinstance(session, list):
        return [("/evaluationInput/sessionSpans", {"spans": session})]
    batches = record.get("batches")
    if any("scopeSpans" in one for one in list_objects(batches)):
        return [("/batches", {"resourceSpans": batches})]
    inner = find_object(record, "trace", "result").get("resourceSpans")
    if isinstance(inner, list):
        return [("/trace/resourceSpans", {"resourceSpans": inner})]
    traces = [one for one in list_objects(record.get("data")) if "spans" in one and "processes" in one]
    return [(f"/data/{place}", {"spans": one["spans"]}) for place, one in enumerate(traces)] or None


def read_export(data: bytes) -> dict[str, JsonValue]:
    """Read an ExportTraceServiceRequest as OTLP's JSON: `{"resourceSpans": [...]}`.

    Ids are hex digits, times decimal digits; doubles that JSON cannot express become texts.

    Raises MalformedError: the bytes are no such message.
    """
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 (.2 s, and no other form of a trace needs them)
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415

    try:
        request = ExportTraceServiceRequest.FromString(data)
    except DecodeError:
        raise MalformedError.at("", "not OTLP in protobuf, cut off, or nested too deep") from None
    body: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    if data and not body:
        raise MalformedError.at("", "not OTLP in protobuf: it holds no field of a request")
    for resource, written_resource in zip(request.resource_spans, body.get("resourceSpans", ()), strict=True):
        for scope, written_scope in zip(resource.scope_spans, written_resource.get("scopeSpans", ()), strict=True):
            for span, written in zip(scope.spans, written_scope.get("spans", ()), strict=True):
                # protobuf writes ids in base64, OTLP in hex.
                ids = {"traceId": span.trace_id, "spanId": span.span_id, "parentSpanId": span.parent_span_id}
                written |= {name: value.hex() for name, value in ids.items() if value}
    return body


def looks_like_request(head: bytes) -> bool:
    """Whether a file with this head is a request, or several prefixed with their lengths: no text starts like that.

    >>> (
    ...     looks_like_request(b"\\n\\x05\\x12\\x03"),
    ...     looks_like_request(b'\\n{"a": 1}'),
    ...     looks_like_request(b"\\0\\0\\1\\0\\n"),
    ... )
    (True, False, True)
    """
    return head[:1] in (b"\n", b"\0") and any(byte < 0x20 and byte not in b"\t\n\r" for byte in head)
