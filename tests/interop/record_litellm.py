# /// script
# dependencies = [
#   "litellm==1.108.2",
#   "mcp==2.3.0",
# ]
# ///
"""LiteLLM: the payload that a logging callback gets, here of the last call of the model."""

import asyncio
import json

import litellm
from conversation import CALLS, INSTRUCTIONS, MODEL, QUESTION, TOOL, get_order_or_error, write
from litellm.integrations.custom_logger import CustomLogger

payloads = asyncio.Queue()


class Keeper(CustomLogger):
    """Keep the payloads that a logging backend would be sent."""

    async def async_log_success_event(self, kwargs, **_):
        await payloads.put(kwargs["standard_logging_object"])


async def main():
    """Have the conversation: LiteLLM runs no tools, so the loop is ours."""
    litellm.callbacks = [Keeper()]
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    for _ in range(len(CALLS) + 1):
        response = await litellm.acompletion(f"openai/{MODEL}", messages, tools=[TOOL])
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or ():
            result = json.dumps(get_order_or_error(**json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        payload = await payloads.get()
    write("litellm.json", json.dumps(payload, indent=1, default=str))


asyncio.run(main())
