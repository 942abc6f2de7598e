# /// script
# dependencies = [
#   "logfire==5.4.0",
#   "pydantic-ai-slim[openai]==2.66.0",
# ]
# ///
"""Logfire: the spans of a Pydantic AI agent, as the SDK's console exporter prints them."""

import io

import logfire
from conversation import INSTRUCTIONS, MODEL, QUESTION, UnknownOrderError, get_order, write
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from pydantic_ai import Agent, ModelRetry

out = io.StringIO()
processor = SimpleSpanProcessor(ConsoleSpanExporter(out=out))
logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[processor], inspect_arguments=False)
logfire.instrument_pydantic_ai()
agent = Agent(f"openai-chat:{MODEL}", instructions=INSTRUCTIONS)


@agent.tool_plain(name="get_order")
def look_up(order_id: str) -> dict[str, str]:
    """Return the state of an order."""
    try:
        return get_order(order_id)
    except UnknownOrderError as error:
        raise ModelRetry(str(error)) from None


agent.run_sync(QUESTION)
write("logfire.json", out.getvalue())
