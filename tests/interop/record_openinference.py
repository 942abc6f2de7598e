# /// script
# dependencies = [
#   "openinference-instrumentation-openai==0.1.66",
#   "opentelemetry-sdk==1.45.2",
#   "openai==3.46.0",
# ]
# ///
"""OpenInference's instrumentation of OpenAI: its spans, as the SDK's console exporter prints them."""

import io

from conversation import converse, write
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

out, provider = io.StringIO(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
with trace.get_tracer("shop").start_as_current_span("shop"):
    converse(OpenAI())
write("openinference.json", out.getvalue())
