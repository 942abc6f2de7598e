"""Peers on the same cases, in an environment of their own: `make peers` makes it, `make bench` runs this file with its Python.

It reads the cases as JSON from the file it is given, says in a line of JSON which peers are there, and works through all cases
once, peer by peer, for each line on standard input: then it writes the CPU seconds of each. None of them looks at schemas.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Work = Callable[[Case], object]


def build_pydantic_evals() -> Work:
    """Equality of all calls, building the context included; not its runner, which costs far more."""
    from pydantic_evals.evaluators import EqualsExpected, EvaluatorContext
    from pydantic_evals.otel.span_tree import SpanTree

    equal = EqualsExpected()

    def work(case: Case) -> object:
        given: dict[str, Any] = {"name": case["id"], "inputs": case["user_message"], "metadata": None, "duration": 0.0}
        given |= {"expected_output": case["expected_calls"], "output": case["actual_calls"]}
        return equal.evaluate(EvaluatorContext(**given, _span_tree=SpanTree(), attributes={}, metrics={}))

    return work


def build_agentevals() -> Work:
    """The match of trajectories in any order, arguments exact."""
    from agentevals.trajectory.match import create_trajectory_match_evaluator

    match = create_trajectory_match_evaluator(trajectory_match_mode="unordered", tool_args_match_mode="exact")

    def work(case: Case) -> object:
        return match(outputs=_tell(case, "actual_calls"), reference_outputs=_tell(case, "expected_calls"))

    return work


def _tell(case: Case, which: str) -> list[dict[str, Any]]:
    calls = [
        {
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            "id": str(n),
            "type": "function",
        }
        for n, call in enumerate(case[which])
    ]
    return [
        {"role": "user", "content": case["user_message"]},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]


def build_deepeval() -> Work:
    """ToolCorrectness with arguments, building the test case included."""
    from deepeval.metrics import ToolCorrectnessMetric
    from deepeval.test_case import LLMTestCase, ToolCall, ToolCallParams

    metric = ToolCorrectnessMetric(evaluation_params=[ToolCallParams.INPUT_PARAMETERS], include_reason=False)

    def tell(calls: list[dict[str, Any]]) -> list[Any]:
        return [ToolCall(name=call["name"], input_parameters=call["arguments"]) for call in calls]

    def work(case: Case) -> object:
        called, due = tell(case["actual_calls"]), tell(case["expected_calls"])
        return metric.measure(
            LLMTestCase(input=case["user_message"], actual_output="", tools_called=called, expected_tools=due),
            _show_indicator=False,
        )

    return work


def build_uipath() -> Work:
    """Its evaluators of arguments, order and counts, building spans and criteria included."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from uipath.eval.evaluators.tool_call_args_evaluator import ToolCallArgsEvaluator
    from uipath.eval.evaluators.tool_call_count_evaluator import ToolCallCountEvaluator
    from uipath.eval.evaluators.tool_call_order_evaluator import ToolCallOrderEvaluator
    from uipath.eval.models import WorkloadExecution

    order, counts, args = (
        kind.model_validate({"id": kind.__name__, "evaluatorConfig": {"strict": True}})
        for kind in (ToolCallOrderEvaluator, ToolCallCountEvaluator, ToolCallArgsEvaluator)
    )

    resource = Resource.get_empty()  # a tracer's spans share one; a span without makes its own, which takes far longer

    def tell(call: dict[str, Any]) -> ReadableSpan:
        attributes = {"tool.name": call["name"], "input.value": json.dumps(call["arguments"])}
        return ReadableSpan(call["name"], resource=resource, attributes=attributes)

    async def evaluate(case: Case) -> object:
        run = WorkloadExecution(
            agent_input={"message": case["user_message"]},
            workload_output={},
            workload_trace=[tell(call) for call in case["actual_calls"]],
        )
        due = [call["name"] for call in case["expected_calls"]]
        numbers = {name: ("==", count) for name, count in Counter(due).items()}
        calls = [{"name": call["name"], "args": call["arguments"]} for call in case["expected_calls"]]
        asked = [
            (order, {"tool_calls_order": due}),
            (counts, {"tool_calls_count": numbers}),
            (args, {"tool_calls": calls}),
        ]
        return [await one.evaluate(run, one.evaluation_criteria_type.model_validate(of)) for one, of in asked]

    def work(case: Case) -> object:
        try:
            evaluate(case).send(None)  # it waits for nothing: no loop is paid for
        except StopIteration as done:
            return done.value
        raise RuntimeError("it waits")

    return work


PEERS: dict[str, Callable[[], Work]] = {
    "uipath": build_uipath,
    "pydantic-evals": build_pydantic_evals,
    "agentevals": build_agentevals,
    "deepeval": build_deepeval,
}


def main(file: str) -> None:
    """Answers line by line until standard input ends."""
    cases = json.loads(Path(file).read_text("utf-8"))
    works: dict[str, Work] = {}
    for name, build in PEERS.items():
        try:
            work = build()
            work(cases[0])
        except Exception as error:  # noqa: BLE001 (a peer that cannot be used is left out, and said to be)
            print(f"{name} is left out: {error!r}"[:200], file=sys.stderr)
        else:
            works[name] = work
    print(json.dumps({name: metadata.version(name) for name in works}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({name: _time(work, cases) for name, work in works.items()}), flush=True)


def _time(work: Work, cases: list[Case]) -> float:
    start = time.process_time()
    for case in cases:
        work(case)
    return time.process_time() - start


if __name__ == "__main__":
    main(sys.argv[1])
