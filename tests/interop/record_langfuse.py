# /// script
# dependencies = [
#   "langfuse==5.0.4",
#   "openai==2.54.0",
# ]
# ///
"""Langfuse: the spans that its wrapper of OpenAI sends, as the SDK's console exporter prints them."""

import io

from conversation import QUESTION, converse, get_order, write
from langfuse import Langfuse, observe
from langfuse.openai import OpenAI
from opentelemetry.sdk.trace.export import ConsoleSpanExporter

out = io.StringIO()
langfuse = Langfuse(
    public_key="none", secret_key="none", base_url="http://localhost", span_exporter=ConsoleSpanExporter(out=out)
)
look_up = observe(get_order, name="get_order", as_type="tool")


@observe(as_type="agent")
def shop(question):
    """Answer a question: the loop is ours."""
    return converse(OpenAI(), look_up, question)[-1]["content"]


shop(QUESTION)
langfuse.flush()
write("langfuse.json", out.getvalue())
