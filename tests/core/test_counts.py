"""How many functions a case takes: the same on every machine, so that a change that adds work is seen."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest

from service.core.rubric_extension import Extension
from service.engine import Engine, report_json
from service.registry import Registry
from tests.benchmarks.scoring import BESIDE_THE_GATES, GATES_ALONE
from tests.benchmarks.workload import cases, request

Json = Any

CASES = 60
MEASURED_ON = (3, 11)


def count_calls(engine: Engine, requests: Sequence[Json]) -> int:
    """Calls of functions, of Python's own too, to score requests whose tools and rubrics were seen before."""
    for one in requests:
        report_json(engine.score(one))
    calls = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for one in requests:
            report_json(engine.score(one))
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.skipif(sys.version_info[:2] != MEASURED_ON, reason="calls are counted on Python 3.11")
@pytest.mark.parametrize(
    ("rubric", "agreeing", "most"),
    [(GATES_ALONE, False, 770), (GATES_ALONE, True, 615), ("four_step", False, 960)],
    ids=["gates", "gates, all calls agree", "four_step"],
)
def test_calls_of_a_case(rubric: str, agreeing: bool, most: int) -> None:
    engine = Engine(Registry())
    engine.registry.add(engine.registry.find(Extension(extends="four_step", id=GATES_ALONE, without=BESIDE_THE_GATES)))
    chosen = [case for case in cases()[1] if not agreeing or case["actual_calls"] == case["expected_calls"] != []]
    requests = [request(case) | {"rubric": rubric} for case in chosen[:CASES]]
    assert count_calls(engine, requests) / len(requests) <= most


def test_nothing_waits_for_the_collector() -> None:
    engine = Engine(Registry())
    requests = [request(case) for case in cases()[1][:CASES]]
    for one in requests:
        report_json(engine.score(one))
    gc.collect()
    gc.disable()
    try:
        for one in requests:
            report_json(engine.score(one))
        assert gc.collect() == 0
    finally:
        gc.enable()


def build_case(  # noqa: PLR0913 (each by name)
    *,
    calls: int = 1,
    wrong: int = 0,
    tools: int = 1,
    properties: int = 2,
    records: int = 1,
    stated: int = 0,
    criteria: int = 0,
) -> Json:
    """A request whose trace has so much of each; the arguments of the last `wrong` calls are not the expected ones.

    `stated`: how many records the answer tells of.
    """
    made = [{"n": n, "text": f"value {n}"} for n in range(calls)]
    due = [one | ({"text": "another"} if n >= calls - wrong else {}) for n, one in enumerate(made)]
    more_properties = {f"p{n}": {"type": "string", "description": f"property {n}"} for n in range(properties)}
    declared = {"n": {"type": "integer"}, "text": {"type": "string"}, **more_properties}
    schema = {"type": "object", "properties": declared}
    names = [f"tool_{n % max(1, calls // 4)}" for n in range(calls)]
    offered = [{"name": f"tool_{n}", "description": "a tool", "parameters": schema} for n in range(max(tools, calls))]
    result = {"records": [{"id": n, "name": f"record {n}", "amount": n / 4} for n in range(records)]}
    events: list[Json] = [{"user": "Do it."}]
    for n, (name, args) in enumerate(zip(names, made, strict=True)):
        events.append({"call": {"name": name, "arguments": args}, "result": result if n == 0 else {"ok": True}})
    answer = " ".join(["Done.", *[f"Record {n} has {n / 4:.2f}." for n in range(stated)]])
    more = [{"id": f"more_{n}", "stage": "arguments", "check": {"kind": "schema"}} for n in range(criteria)]
    return {
        "rubric": {"extends": "four_step", "id": "larger", "criteria": more},
        "trace": {"format": "callgrade", "tools": offered, "events": [*events, {"assistant": answer}]},
        "expected": {"calls": [{"tool": name, "args": args} for name, args in zip(names, due, strict=True)]},
        "judges": "off",
    }


def put_in_order(case: Json) -> Json:
    return case | {"expected": {"ordered": case["expected"]["calls"]}}


GROWN: dict[str, Callable[[int], Json]] = {
    "calls": lambda n: build_case(calls=n),
    "calls with a wrong argument": lambda n: build_case(calls=n, wrong=1),
    "ordered calls": lambda n: put_in_order(build_case(calls=n)),
    "tools": lambda n: build_case(tools=4 * n),
    "properties of a schema": lambda n: build_case(properties=3 * n),
    "records of a result": lambda n: build_case(records=2 * n),
    "an answer about a result": lambda n: build_case(records=2 * n, stated=2 * n),
    "criteria": lambda n: build_case(criteria=n),
}
SIZES = (32, 64, 128, 256)
MAX_SLOPE = 1.15
"""Of the logarithm of the calls of functions, by the logarithm of the size: 1 if work is linear, 2 if it is quadratic."""


@pytest.mark.parametrize("grown", GROWN.values(), ids=GROWN.keys())
def test_work_grows_with_what_is_given(grown: Callable[[int], Json]) -> None:
    engine = Engine(Registry())
    least = count_calls(engine, [grown(1)])
    added = [count_calls(engine, [grown(size)]) - least for size in SIZES]
    slope, _ = np.polyfit(np.log(SIZES), np.log(added), 1)
    assert slope <= MAX_SLOPE
