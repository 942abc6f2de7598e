# /// script
# dependencies = [
#   "opentelemetry-instrumentation-openai==0.62.4",
#   "opentelemetry-sdk==1.45.2",
#   "openai==3.46.0",
# ]
# ///
"""OpenLLMetry's instrumentation of OpenAI: its spans, as the SDK's console exporter prints them."""

import io

from conversation import converse, write
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

out, provider = io.StringIO(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
with trace.get_tracer("shop").start_as_current_span("shop"):
    converse(OpenAI())
write("opentelemetry_openllmetry.json", out.getvalue())
