# /// script
# dependencies = [
#   "google-adk==2.13.0",
# ]
# ///
"""Google ADK: a session, as its model dumps it, and the spans of the run."""

import asyncio
import io
import os

from conversation import INSTRUCTIONS, QUESTION, URL, get_order_or_error, write
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

os.environ["GOOGLE_API_KEY"] = "none"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"


out = io.StringIO()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
trace.set_tracer_provider(provider)


async def main():
    """Have the conversation in a session, and dump the session."""
    get_order_or_error.__name__ = "get_order"
    model = Gemini(model="gemini-2.5-flash", base_url=URL)
    agent = LlmAgent(name="shop", model=model, instruction=INSTRUCTIONS, tools=[get_order_or_error])
    runner = InMemoryRunner(agent, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        pass
    session = await runner.session_service.get_session(app_name="shop", user_id="user", session_id=session.id)
    write("google_adk.json", session.model_dump_json(by_alias=True, exclude_none=True, indent=1))
    write("google_adk_fields.json", session.model_dump_json(indent=1))


asyncio.run(main())
write("google_adk_spans.json", out.getvalue())
