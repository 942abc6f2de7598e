"""The agent of Pydantic AI that has the conversation; imported by the scripts that record it."""

from conversation import INSTRUCTIONS, MODEL, UnknownOrderError, get_order
from pydantic_ai import Agent, ModelRetry

agent = Agent(f"openai-chat:{MODEL}", instructions=INSTRUCTIONS)


@agent.tool_plain(name="get_order")
def look_up(order_id: str) -> dict[str, str]:
    """Return the state of an order."""
    try:
        return get_order(order_id)
    except UnknownOrderError as error:
        raise ModelRetry(str(error)) from None
