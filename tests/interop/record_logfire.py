# /// script
# dependencies = [
#   "logfire==5.4.0",
#   "pydantic-ai-slim[openai]==2.66.0",
# ]
# ///
"""Logfire: the spans of a Pydantic AI agent, as the SDK's console exporter prints them."""

import io

import logfire
from conversation import QUESTION, write
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from pydantic_agent import agent

out = io.StringIO()
processor = SimpleSpanProcessor(ConsoleSpanExporter(out=out))
logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[processor], inspect_arguments=False)
logfire.instrument_pydantic_ai()
agent.run_sync(QUESTION)
write("logfire.json", out.getvalue())
