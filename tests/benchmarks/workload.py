"""The cases that are timed: the packaged workload where it is at hand, else cases made here."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

PACKAGED = (
    Path(os.environ.get("CALLGRADE_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
    / "bench"
    / "workload.jsonl.gz"
)


def cases() -> tuple[str, list[dict[str, Any]]]:
    """Where the cases come from, and the cases: id, tools, user_message, expected_calls, actual_calls."""
    if PACKAGED.is_file():
        with gzip.open(PACKAGED, "rt", encoding="utf-8") as lines:
            return "the packaged workload", [json.loads(line) for line in lines]
    return "cases made here (the packaged workload is not at hand)", [_made(n) for n in range(300)]


def request(case: dict[str, Any]) -> dict[str, Any]:
    """A case as a score request in Chat Completions form."""
    calls = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for n, call in enumerate(case["actual_calls"])
    ]
    return {
        "trace": {
            "format": "openai",
            "id": case["id"],
            "tools": [{"type": "function", "function": tool} for tool in case["tools"]],
            "messages": [
                {"role": "user", "content": case["user_message"]},
                {"role": "assistant", "content": None, "tool_calls": calls},
            ],
        },
        "expected": {"calls": [{"tool": call["name"], "args": call["arguments"]} for call in case["expected_calls"]]},
        "judges": "off",
    }


def _made(n: int) -> dict[str, Any]:
    """One case: three tools, one expected call, in three of ten a wrong value."""
    draw = random.Random(n)
    args = {"order_id": str(draw.randrange(10_000)), "amount_cents": draw.randrange(100, 90_000), "reason": "damaged"}
    made = args | ({"amount_cents": 1} if draw.random() < 0.3 else {})
    properties = {"order_id": {"type": "string"}, "amount_cents": {"type": "integer"}, "reason": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["order_id", "amount_cents"]}
    names = ["refund_order", "void_charge", "get_order"]
    return {
        "id": f"made-{n}",
        "tools": [{"name": name, "description": f"{name} of the shop", "parameters": schema} for name in names],
        "user_message": f"Refund order {args['order_id']}, it came damaged.",
        "expected_calls": [{"name": "refund_order", "arguments": args}],
        "actual_calls": [{"name": "refund_order", "arguments": made}],
    }
