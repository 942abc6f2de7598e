"""(a) Microseconds a case on one core, from the parsed request to the report as JSON bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema_rs

from service.core.grounding.history import History
from service.core.grounding.texts import ground_texts
from service.intake.reading import read_trace
from service.registry import Registry
from tests.benchmarks.workload import make_answer, make_records, request

GATES_ALONE = "gates_alone"
BESIDE_THE_GATES = tuple(
    criterion.id
    for criterion in Registry().find("four_step").criteria
    if criterion.id not in ("decide", "tool_name", "schema", "arguments")
)


ANSWER_CHARS, RESULT_CHARS = 10_000, 100_000


def build_grounding() -> tuple[Callable[[], object], Callable[[], object]]:
    """What grounds a long answer in a large result, and what parses that result as JSON."""
    draw = random.Random(1)
    records = make_records(RESULT_CHARS, draw)
    text = json.dumps(records)
    call = {"name": "list_orders", "arguments": {}}
    case = {
        "id": "grounding",
        "tools": [],
        "user_message": "List the orders.",
        "expected_calls": [],
        "actual_calls": [call],
    }
    made = request(case | {"results": [records], "answer": make_answer(ANSWER_CHARS, records, draw)})
    trace = read_trace(made["trace"])
    return lambda: ground_texts(History(trace)), lambda: json.loads(text)


def build_floor(workload: Sequence[dict[str, Any]]) -> Callable[[], object]:
    """What the least that could be called a check takes, on all cases."""
    tools = [{tool["name"]: tool["parameters"] for tool in case["tools"]} for case in workload]
    schemas = {json.dumps(s): jsonschema_rs.Draft202012Validator(s) for by_name in tools for s in by_name.values()}
    ready = [
        (
            [
                (schemas[json.dumps(by_name[call["name"]])], call["arguments"])
                for call in case["actual_calls"]
                if call["name"] in by_name
            ],
            case["actual_calls"],
            case["expected_calls"],
        )
        for by_name, case in zip(tools, workload, strict=True)
    ]

    def work() -> object:
        return [(all(v.is_valid(a) for v, a in calls), made == due) for calls, made, due in ready]

    return work
