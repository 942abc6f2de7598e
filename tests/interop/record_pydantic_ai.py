# /// script
# dependencies = [
#   "pydantic-ai-slim[openai]==2.66.0",
# ]
# ///
"""Pydantic AI: the messages of a run, as it exports them."""

from conversation import QUESTION, write
from pydantic_agent import agent

write("pydantic_ai.json", agent.run_sync(QUESTION).all_messages_json())
