"""The one conversation that every library has: what is asked, the tool, and what a model says at each turn.

A script `record_*.py` imports this with the Python of its own environment, so it needs the standard library alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MODEL = "gpt-4.1"
"""A name that every library knows how to talk to; nothing reaches its provider."""
URL = os.environ.get("INTEROP_URL", "")
"""Where the fake model answers."""
QUESTION = "Where are my orders A-1001 and A-2002?"
ORDERS = {"A-1001": {"status": "shipped", "carrier": "Northmail"}}
CALLS = ({"order_id": "A-1001"}, {"order_id": "A-2002"})
ANSWER = "Order A-1001 was shipped with Northmail; there is no order A-2002."
INSTRUCTIONS = "You look up orders with get_order."
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_order",
        "description": "Return the state of an order.",
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    },
}


class UnknownOrderError(LookupError):
    """There is no such order."""


def get_order(order_id: str) -> dict[str, str]:
    """Return the state of an order.

    Args:
        order_id: The number of the order.
    """
    if order_id not in ORDERS:
        raise UnknownOrderError(f"there is no order {order_id}")
    return ORDERS[order_id]


def get_order_or_error(order_id: str) -> dict[str, str]:
    """Return the state of an order, or the error; for libraries that end a run at an exception.

    Args:
        order_id: The number of the order.
    """
    return ORDERS.get(order_id) or {"error": f"there is no order {order_id}"}


def converse(client: Any, look_up: Callable[..., Any] = get_order_or_error, question: str = QUESTION) -> list[Any]:
    """Have the conversation with a client of OpenAI's form, for libraries that run no loop; return its messages."""
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    while True:
        completion = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return messages
        for call in message.tool_calls:
            try:
                result = json.dumps(look_up(**json.loads(call.function.arguments)))
            except LookupError as error:
                result = str(error)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def write(name: str, exported: str | bytes | Mapping[str, Any] | list[Any]) -> None:
    """Write what the library exported; an object as JSON, for a library that returns plain data."""
    text = exported if isinstance(exported, (str, bytes)) else json.dumps(exported, indent=1)
    file = Path(os.environ["INTEROP_OUT"]) / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
