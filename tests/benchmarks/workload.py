"""The cases that are timed: the packaged workload where it is at hand, else cases made here; and large cases, made here."""

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


def add_results(case: dict[str, Any]) -> dict[str, Any]:
    """The case with a small result for each call, and an answer that states values of them."""
    draw = random.Random(case["id"])
    orders = [
        {"id": f"A{draw.randrange(10**6)}", "total_usd": draw.randrange(10_000) / 100} for _ in case["actual_calls"]
    ]
    said = [f"{order['id']} costs ${order['total_usd']:.2f}." for order in orders]
    return case | {"results": [{"status": "ok", "order": order} for order in orders], "answer": " ".join(said)}


NAMES = ["Ann Lee", "Jürgen Groß", "José Núñez", "佐藤 花子", "Ольга Иванова"]
NOTES = ["an der Tür abgelegt", "配達済みです", "left with a neighbour", "livré hier soir", "доставлено 🚚"]
VERBS = ["list", "get", "update", "cancel", "export"]
NOUNS = ["orders", "invoices", "shipments", "refunds", "customers", "coupons"]


def large_cases() -> list[dict[str, Any]]:
    """Cases of other shapes: 30 tools with long schemas, texts in five scripts, and a result of some 20 kB."""
    tools = [_make_large_tool(f"{verb}_{noun}") for verb in VERBS for noun in NOUNS]
    return [_make_large(n, tools) for n in range(30)]


def _make_large_tool(name: str) -> dict[str, Any]:
    fields = {
        f"{field}_{n}": {
            "type": kind,
            "description": f"The {field} number {n} that {name} looks at, as the shop writes it.",
        }
        for n in range(8)
        for field, kind in (("text", "string"), ("count", "integer"), ("flag", "boolean"))
    }
    status = {"type": "string", "enum": ["open", "paid", "shipped", "returned"]}
    item = {"type": "object", "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}}}
    properties = {
        "status": status,
        "items": {"type": "array", "items": item},
        "filter": {"type": "object", "properties": fields},
    }
    parameters = {"type": "object", "properties": properties, "required": ["status"], "additionalProperties": False}
    return {"name": name, "description": f"{name} of the shop; see the manual.", "parameters": parameters}


def make_records(chars: int, draw: random.Random) -> list[dict[str, Any]]:
    """Orders that take about so many characters as JSON."""
    return [
        {
            "id": f"ord_{draw.randrange(10**6):06d}",
            "customer": draw.choice(NAMES),
            "total_usd": draw.randrange(100, 10**6) / 100,
            "placed": f"2025-{draw.randrange(1, 13):02d}-{draw.randrange(1, 29):02d}",
            "items": draw.randrange(1, 9),
            "note": draw.choice(NOTES),
        }
        for _ in range(chars // 150)
    ]


def make_answer(chars: int, records: list[dict[str, Any]], draw: random.Random) -> str:
    """A text of about so many characters that states values of the records."""
    said = [draw.choice(records) for _ in range(chars // 90)]
    return " ".join(
        f"Order {one['id']} of {one['customer']}, placed on {one['placed']}, costs ${one['total_usd']:,.2f}."
        for one in said
    )


def _make_large(n: int, tools: list[dict[str, Any]]) -> dict[str, Any]:
    draw = random.Random(n)
    fields = {f"text_{k}": draw.choice(NOTES) for k in range(4)} | {f"count_{k}": draw.randrange(99) for k in range(4)}
    due = [
        {
            "name": draw.choice(tools)["name"],
            "arguments": {"status": "paid", "items": [{"sku": f"S{k}", "quantity": k + 1}], "filter": fields},
        }
        for k in range(4)
    ]
    wrong = {**due[3], "arguments": {**due[3]["arguments"], "status": "lost"}}
    records = make_records(20_000, draw)
    return {
        "id": f"large-{n}",
        "tools": tools,
        "user_message": f"Bitte prüfe die Bestellungen von {draw.choice(NAMES)}: {draw.choice(NOTES)}.",
        "expected_calls": due,
        "actual_calls": [*due[:3], wrong if draw.random() < 0.3 else due[3]],
        "results": [{"orders": records}, *[{"status": "ok"}] * 3],
        "answer": make_answer(1_000, records, draw),
    }


def request(case: dict[str, Any]) -> dict[str, Any]:
    """A case as a score request in Chat Completions form, with results and an answer where it has them."""
    calls = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for n, call in enumerate(case["actual_calls"])
    ]
    returned = [
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result, ensure_ascii=False)}
        for call, result in zip(calls, case.get("results", ()), strict=False)
    ]
    answer = [{"role": "assistant", "content": case["answer"]}] if "answer" in case else []
    return {
        "trace": {
            "format": "openai",
            "id": case["id"],
            "tools": [{"type": "function", "function": tool} for tool in case["tools"]],
            "messages": [
                {"role": "user", "content": case["user_message"]},
                {"role": "assistant", "content": None, "tool_calls": calls},
                *returned,
                *answer,
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
