"""Documents of other systems that hold OpenTelemetry's spans: Jaeger, Zipkin, Tempo, and what AgentCore calls evaluators with.

Each is turned into spans as `spans` takes them. Times are in microseconds in Jaeger and Zipkin; a tag `error` or a status
tag says that a span failed; logs and annotations are events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_items, list_objects
from service.errors import MalformedError

Plain = dict[str, JsonValue]


def split_export(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the spans in a document of another system, by trace, with pointers; None if it is none."""
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
    if traces:
        return [(f"/data/{place}", {"spans": [*_read_jaeger(one)]}) for place, one in enumerate(traces)]
    zipkin = {"traceId", "id", "name"} <= record.keys() and bool(
        record.keys() & {"tags", "localEndpoint", "annotations"}
    )
    return [("", {"spans": [_read_zipkin(record)]})] if zipkin else None


def _read_jaeger(trace: JsonObject) -> Iterator[Plain]:
    for span in list_objects(trace.get("spans")):
        tags = _read_tags(span.get("tags"))
        parents = [one for one in list_objects(span.get("references")) if one.get("refType") == "CHILD_OF"]
        events: list[JsonValue] = []
        for log in list_objects(span.get("logs")):
            fields = _read_tags(log.get("fields"))
            events.append({"name": fields.pop("event", ""), "attributes": fields})
        lost = span.get("warnings")
        yield {
            "trace_id": span.get("traceID"),
            "span_id": span.get("spanID"),
            "parent_id": parents[0].get("spanID") if parents else None,
            "name": span.get("operationName"),
            **_read_times(span, "startTime"),
            "status": _read_status(tags),
            "attributes": tags,
            "events": events,
            "dropped_attributes_count": len(list_items(lost)),
        }


def _read_tags(raw: JsonValue) -> Plain:
    return {str(tag["key"]): tag.get("value") for tag in list_objects(raw) if "key" in tag}


def _read_times(span: JsonObject, start_name: str) -> Plain:
    """Return the start and the end in nanoseconds."""
    start, took = span.get(start_name), span.get("duration")
    if not isinstance(start, (int, float)):
        return {}
    end = start + (took if isinstance(took, (int, float)) else 0)
    return {"start_time_unix_nano": int(start) * 1000, "end_time_unix_nano": int(end) * 1000}


def _read_status(tags: Plain) -> Plain:
    failed = tags.get("otel.status_code") == "ERROR" or tags.get("error") not in (None, False, "false", "")
    return {"code": "ERROR" if failed else "UNSET", "description": tags.get("otel.status_description")}


def _read_zipkin(span: JsonObject) -> Plain:
    tags = dict(find_object(span, "tags"))
    return {
        "trace_id": span.get("traceId"),
        "span_id": span.get("id"),
        "parent_id": span.get("parentId"),
        "name": span.get("name"),
        **_read_times(span, "timestamp"),
        "status": _read_status(tags),
        "attributes": tags,
        "events": [{"name": note.get("value")} for note in list_objects(span.get("annotations"))],
    }


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
