# /// script
# dependencies = [
#   "llama-index-core==0.14.25",
#   "llama-index-llms-openai==0.8.3",
# ]
# ///
"""LlamaIndex: the events of an agent, and the chat history that it keeps."""

import asyncio

from conversation import INSTRUCTIONS, MODEL, QUESTION, URL, get_order, write
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.openai import OpenAI


async def main():
    """Have the conversation with an agent that calls functions."""
    agent = FunctionAgent(tools=[get_order], llm=OpenAI(model=MODEL, api_base=f"{URL}/v1"), system_prompt=INSTRUCTIONS)
    memory = ChatMemoryBuffer.from_defaults()
    handler = agent.run(QUESTION, memory=memory)
    events = [event.model_dump(mode="json") async for event in handler.stream_events()]
    await handler
    write("llama_index_events.json", {"events": events})
    write("llama_index_messages.json", [message.model_dump(mode="json") for message in memory.get_all()])


asyncio.run(main())
