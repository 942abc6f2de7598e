# /// script
# dependencies = [
#   "langfuse==5.0.4",
#   "openai==2.54.0",
# ]
# ///
"""Langfuse: the spans that its wrapper of OpenAI sends, as the SDK's console exporter prints them."""

import io
import json

from conversation import CALLS, INSTRUCTIONS, MODEL, QUESTION, TOOL, get_order, write
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
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    for _ in range(len(CALLS) + 1):
        message = OpenAI().chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or ():
            try:
                result = json.dumps(look_up(**json.loads(call.function.arguments)))
            except LookupError as error:
                result = str(error)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return messages[-1]["content"]


shop(QUESTION)
langfuse.flush()
write("langfuse.json", out.getvalue())
