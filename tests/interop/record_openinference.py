# /// script
# dependencies = [
#   "openinference-instrumentation-openai==0.1.66",
#   "opentelemetry-sdk==1.45.2",
#   "openai==3.46.0",
# ]
# ///
"""OpenInference's instrumentation of OpenAI: its spans, as the SDK's console exporter prints them."""

from instrumented import record
from openinference.instrumentation.openai import OpenAIInstrumentor

record(OpenAIInstrumentor(), "openinference.json")
