"""(a) Microseconds a case on one core, from the parsed request to the report as JSON bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema_rs

from service.core.rubric_extension import Extension
from service.engine import Engine, report_json
from service.reading.strict_json import Limits, parse
from service.registry import Registry
from tests.benchmarks.workload import cases, request

GATES_ALONE = "gates_alone"
BESIDE_THE_GATES = tuple(
    criterion.id
    for criterion in Registry().find("four_step").criteria
    if criterion.id not in ("decide", "tool_name", "schema", "arguments")
)


def best(work: Callable[[], object], *, rounds: int = 15) -> float:
    """Seconds of the fastest of `rounds` runs: what the work costs when nothing else runs."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure() -> None:
    """Prints the cost of scoring beside its floor and its parts."""
    source, workload = cases()
    requests = [request(case) for case in workload]
    engine = Engine(Registry())
    per = 1e6 / len(workload)
    floor = best(build_floor(workload)) * per
    gates = [one | {"rubric": GATES_ALONE} for one in requests]
    engine.registry.add(engine.registry.find(Extension(extends="four_step", id=GATES_ALONE, without=BESIDE_THE_GATES)))
    alone = best(lambda: [report_json(engine.score(one)) for one in gates]) * per
    whole = best(lambda: [report_json(engine.score(one)) for one in requests]) * per
    bodies = [json.dumps(one).encode() for one in requests]
    limits = Limits()
    parsing = best(lambda: [parse(body, limits) for body in bodies]) * per
    print(f"(a) scoring, {len(workload)} cases of {source}, one core")
    print(f"    floor (jsonschema-rs with a cached validator and dict equality)   {floor:8.1f} us a case")
    print(f"    decide, tool_name, schema, arguments: parsed request -> report    {alone:8.1f} us a case")
    print(f"    ratio to the floor                                                {alone / floor:8.1f}")
    print(f"    four_step whole                                                   {whole:8.1f} us a case")
    print(f"    beside it: body bytes -> parsed request                           {parsing:8.1f} us a case")


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
