"""The conversation with a client of OpenAI whose calls an instrumentation of OpenTelemetry records."""

import io
from typing import Any

from conversation import converse, write
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def record(instrumentor: Any, name: str) -> None:
    """Write the spans to the file of this name, as the SDK's console exporter prints them."""
    out, provider = io.StringIO(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    trace.set_tracer_provider(provider)
    instrumentor.instrument()
    with trace.get_tracer("shop").start_as_current_span("shop"):
        converse(OpenAI())
    write(name, out.getvalue())
