"""Future AGI's numbers and ours; `tests/data/carried/future_agi.yaml` holds the cases."""

from __future__ import annotations

from typing import Any

import pytest

from service import InputError, score
from service.core.methods.future_agi_number import (
    Options,
    compute_accuracy,
    is_same_value,
    match_exactly,
    read_parameters,
)
from tests.core.carried_cases import codes, load, report, trace, values

TABLE = load("future_agi")
METRICS = ("function_name_match", "parameter_validation", "function_call_accuracy", "function_call_exact_match")
RUBRIC = "future_agi_function_calling"
cases = pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in TABLE["cases"]])


def scored(case: dict[str, Any], *, compat: bool):
    stages = ("select", "arguments", "arguments", "arguments")
    criteria = tuple(
        {"id": metric, "stage": stage, "check": {"kind": "future_agi", "metric": metric, **case.get("options", {})}}
        for metric, stage in zip(METRICS, stages, strict=True)
    )
    return report(RUBRIC, {"tools": TABLE["tools"], **case}, compat=compat, criteria=criteria)


@cases
def test_future_agis_own_numbers(case: dict[str, Any]) -> None:
    found = scored(case, compat=True)
    assert [values(found)[metric] for metric in METRICS] == pytest.approx(case["upstream"], abs=1e-9)
    assert ("compat_differs" in codes(found)) == (case.get("ours", case["upstream"]) != case["upstream"])


@cases
def test_our_numbers(case: dict[str, Any]) -> None:
    found = scored(case, compat=False)
    for metric, wanted in zip(METRICS, case.get("ours", case["upstream"]), strict=True):
        assert values(found)[metric] == (wanted if wanted is None else pytest.approx(wanted, abs=1e-9)), metric
    assert case.get("finding") is None or case["finding"] in codes(found)


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


def test_a_matcher_has_no_number_there() -> None:
    case = {
        "made": [["f", {"a": 1}]],
        "expected": {"calls": [{"tool": "f", "args": {"a": {"kind": "range", "min": 1}}}]},
    }
    assert values(scored(case, compat=False))["function_call_accuracy"] == 1.0
    with pytest.raises(InputError, match="/expected/calls/0/args/a"):
        scored(case, compat=True)


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


def test_no_call_expected_in_its_shape() -> None:
    gold = {"format": "future_agi", "expected_response": []}
    assert score({"rubric": RUBRIC, "trace": trace({}), "expected": gold}).score == 1.0


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


# Seen from ai-evaluation 1.1.0: made, expected, options, the score.
SEEN = [
    (compute_accuracy, [("f", {"x": [1]}), ("g", {})], [("f", {"x": [1.0], "y": 2}), ("h", {"z": 1})], {}, 0.35),
    (compute_accuracy, [("f", {"x": 1})], [("f", {"x": 1}), ("g", {"y": 1})], {"order_matters": True}, 0.0),
    (compute_accuracy, [("f", {"w": 1})], [("f", {})], {"ignore_extra_params": True}, 1.0),
    (match_exactly, [("f", {"x": {"k": 1}})], [("f", {"x": {"k": 1.0}})], {}, 1.0),
    (match_exactly, [("f", {"x": {"k": 1}})], [("f", {"x": {"k": 1.0}})], {"strict_type_check": True}, 0.0),
    (match_exactly, [("f", {"x": 1, "w": 1})], [("f", {"x": 1})], {"ignore_extra_params": True}, 1.0),
    (match_exactly, [("f", {"w": 1})], [("f", {"x": 1})], {"ignore_extra_params": True}, 0.0),
]


@pytest.mark.parametrize(("method", "made", "expected", "options", "wanted"), SEEN)
def test_what_was_seen_of_their_code(method: Any, made: Any, expected: Any, options: Any, wanted: float) -> None:
    assert method(made, expected, Options(**options)) == wanted


def test_values_are_compared_at_any_depth() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert is_same_value(deep, deep)
    assert not is_same_value([1, 2], [1])
    assert not is_same_value({"a": 1}, {"b": 1})
    assert not is_same_value(None, 0)


def test_a_schema_without_properties_declares_nothing() -> None:
    assert read_parameters({}) == read_parameters({"properties": {}, "required": ["a"]}) == ()
