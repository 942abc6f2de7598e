# /// script
# dependencies = [
#   "opentelemetry-instrumentation-openai==0.62.4",
#   "opentelemetry-sdk==1.45.2",
#   "openai==3.46.0",
# ]
# ///
"""OpenLLMetry's instrumentation of OpenAI: its spans, as the SDK's console exporter prints them."""

from instrumented import record
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

record(OpenAIInstrumentor(), "opentelemetry_openllmetry.json")
