# /// script
# dependencies = [
#   "strands-agents[openai]==1.62.0",
# ]
# ///
"""Strands Agents: the messages of an agent, as it keeps them."""

import json
import os

from conversation import INSTRUCTIONS, MODEL, QUESTION, get_order, write
from strands import Agent, tool
from strands.models.openai import OpenAIModel

os.environ["STRANDS_OTEL_ENABLE_CONSOLE_EXPORT"] = "false"
model = OpenAIModel(client_args={"api_key": "none", "base_url": os.environ["OPENAI_BASE_URL"]}, model_id=MODEL)
agent = Agent(model=model, tools=[tool(name="get_order")(get_order)], system_prompt=INSTRUCTIONS, callback_handler=None)
agent(QUESTION)
write("strands.json", json.dumps(agent.messages, indent=1))
