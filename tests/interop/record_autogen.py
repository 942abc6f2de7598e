# /// script
# dependencies = [
#   "autogen-agentchat==0.7.5",
#   "autogen-ext[openai]==0.7.5",
# ]
# ///
"""AutoGen: the result of a task, and the state of the agent that did it."""

import asyncio
import json

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from conversation import INSTRUCTIONS, MODEL, QUESTION, get_order, write


async def main():
    """Have the conversation with an agent that may call tools several times."""
    client = OpenAIChatCompletionClient(model=MODEL)
    agent = AssistantAgent("shop", client, tools=[get_order], system_message=INSTRUCTIONS, max_tool_iterations=5)
    result = await agent.run(task=QUESTION)
    write("autogen_task_result.json", result.model_dump_json(indent=1))
    write("autogen_state.json", json.dumps(await agent.save_state(), indent=1))


asyncio.run(main())
