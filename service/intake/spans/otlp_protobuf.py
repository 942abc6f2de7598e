"""Read OTLP traces in protobuf into the form of OTLP's JSON, with the messages that OpenTelemetry itself publishes."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from service.errors import MalformedError


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
