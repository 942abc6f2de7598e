# /// script
# dependencies = [
#   "inspect-ai==0.3.285",
#   "openai==3.46.0",
# ]
# ///
"""Inspect: the log of an evaluation, in both of its file formats."""

import json
from pathlib import Path

import inspect_ai
from conversation import INSTRUCTIONS, MODEL, QUESTION, UnknownOrderError, get_order, write
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import ToolError, tool


@tool(name="get_order")
def look_up():
    """Make the tool, as Inspect wants it."""

    async def execute(order_id: str):
        """Return the state of an order.

        Args:
            order_id: The number of the order.
        """
        try:
            return str(get_order(order_id))
        except UnknownOrderError as error:
            raise ToolError(str(error)) from None

    return execute


solver = [system_message(INSTRUCTIONS), use_tools(look_up()), generate()]
task = Task(dataset=[Sample(input=QUESTION, target="Northmail")], solver=solver, scorer=includes(), name="orders")
for form in ("json", "eval"):
    [log] = inspect_ai.eval(
        task,
        model=f"openai/{MODEL}",
        log_dir="logs",
        log_format=form,
        display="none",
        model_args={"responses_api": False},
    )
    data = Path(log.location).read_bytes()
    write(f"inspect_ai.{form}", json.dumps(json.loads(data)) if form == "json" else data)
