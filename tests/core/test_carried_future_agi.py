"""Future AGI's metrics beside the numbers of `tests/core/test_carried_numbers.py`: whole schemas, and the shapes of its gold."""

from __future__ import annotations

from typing import Any

import pytest

from service import InputError, score
from tests.core.carried_cases import codes, load, report, trace, values

TABLE = load("future_agi")
METRICS = ("function_name_match", "parameter_validation", "function_call_accuracy", "function_call_exact_match")
RUBRIC = "future_agi_function_calling"


def scored(case: dict[str, Any], *, compat: bool):
    stages = ("select", "arguments", "arguments", "arguments")
    criteria = tuple(
        {"id": metric, "stage": stage, "check": {"kind": "future_agi", "metric": metric, **case.get("options", {})}}
        for metric, stage in zip(METRICS, stages, strict=True)
    )
    return report(RUBRIC, {"tools": TABLE["tools"], **case}, compat=compat, criteria=criteria)


def test_whole_json_schemas_are_validated() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "maximum": 5}, "at": {"type": "object", "required": ["city"]}},
    }
    case = {"made": [["f", {"n": 9, "at": {}}]], "tools": [{"name": "f", "parameters": schema}]}
    expected = {"calls": [{"tool": "f"}]}
    found = scored({**case, "expected": expected}, compat=False)
    assert values(found)["parameter_validation"] == 0.0
    assert {"schema_maximum", "schema_required"} <= codes(found)
    assert values(scored({**case, "expected": expected}, compat=True))["parameter_validation"] == 1.0


def test_extra_parameters_that_a_schema_closes_out_are_free_on_request() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    case = {
        "made": [["f", {"n": "x", "z": 1}]],
        "tools": [{"name": "f", "parameters": schema}],
        "expected": {"calls": "some"},
    }
    assert values(scored(case, compat=False))["parameter_validation"] == 0.0
    free = {**case, "made": [["f", {"n": 1, "z": 1}]], "options": {"ignore_extra_params": True}}
    assert values(scored(free, compat=False))["parameter_validation"] == 1.0


def test_without_tools_parameters_are_not_captured() -> None:
    found = report(RUBRIC, {"made": [["f", {}]]}, compat=False)
    assert (found.verdict, found.score) == ("undecided", None)


SHAPES = [
    {"name": "refund", "arguments": {"amount": 5}},
    {"function_name": "refund", "arguments": {"amount": 5}},
    {"function": "refund", "parameters": {"amount": 5}},
    {"name": "refund", "input": '{"amount": 5}'},
    {"type": "function", "function": {"name": "refund", "arguments": '{"amount": 5}'}},
]


@pytest.mark.parametrize("field", ["expected", "expected_response"])
@pytest.mark.parametrize("call", SHAPES, ids=str)
@pytest.mark.parametrize(("tool", "wanted"), [("refund", [1.0, 1.0, 1.0]), ("cancel", [0.0, 0.6, 0.0])])
@pytest.mark.parametrize("several", [True, False])
def test_the_shapes_of_its_document(field: str, call: Any, tool: str, wanted: list[float], several: bool) -> None:
    gold = {"format": "future_agi", field: [call] if several else call}
    made = trace({"made": [[tool, {"amount": 5}]]})
    found = values(score({"rubric": RUBRIC, "trace": made, "expected": gold}))
    assert [found[metric] for metric in METRICS if metric != "parameter_validation"] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("gold", "path"),
    [
        ({"expected": {"arguments": {}}}, "/expected/expected"),
        ({"expected_response": [{"name": "f", "arguments": "{x"}]}, "/expected/expected_response/0/arguments"),
        ({"expected_response": ["f()"]}, "/expected/expected_response/0"),
        ({}, "/expected/expected_response"),
    ],
)
def test_a_call_out_of_shape_is_refused(gold: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        score({"rubric": RUBRIC, "trace": trace({}), "expected": {"format": "future_agi", **gold}})
    assert [problem.path for problem in caught.value.problems] == [path]
