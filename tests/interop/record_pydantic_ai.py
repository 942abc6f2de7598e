# /// script
# dependencies = [
#   "pydantic-ai-slim[openai]==2.66.0",
# ]
# ///
"""Pydantic AI: the messages of a run, as it exports them."""

from conversation import INSTRUCTIONS, MODEL, QUESTION, UnknownOrderError, get_order, write
from pydantic_ai import Agent, ModelRetry

agent = Agent(f"openai-chat:{MODEL}", instructions=INSTRUCTIONS)


@agent.tool_plain(name="get_order")
def look_up(order_id: str) -> dict[str, str]:
    """Return the state of an order."""
    try:
        return get_order(order_id)
    except UnknownOrderError as error:
        raise ModelRetry(str(error)) from None


write("pydantic_ai.json", agent.run_sync(QUESTION).all_messages_json())
