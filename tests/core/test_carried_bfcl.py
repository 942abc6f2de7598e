"""BFCL's verdicts, rule by rule and on every packaged row."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import score
from service.core.expectations.expectation import Expectation
from service.core.methods.bfcl import check
from service.errors import InputError
from service.intake.gold.forms import convert
from tests.core.carried_cases import load

TABLE = load("bfcl")


def doc(properties, required=()):
    return {"type": "dict", "properties": properties, "required": list(required)}


def check_argument(schema, accepted, value):
    """The code of the verdict on one argument, and its place; "" for nothing wrong."""
    problem = check([{"f": {"x": accepted}}], [("f", {"x": value})], {"f": doc({"x": schema})})
    return (problem.code, problem.path) if problem else ("", "")


ARGUMENTS = [
    pytest.param(row["schema"], row["accepted"], value, code, id=f"{row['rule']}: {json.dumps(value)}")
    for row in TABLE["arguments"]
    for value, code in row["verdicts"]
]
CALLS = [
    pytest.param(row, verdict, id=f"{row['rule']}: {json.dumps(verdict)}")
    for row in TABLE["calls"]
    for verdict in row["verdicts"]
]


@pytest.mark.parametrize(("schema", "accepted", "value", "code"), ARGUMENTS)
def test_one_argument(schema, accepted, value, code):
    assert check_argument(schema, accepted, value) == (code, "/steps/0/call/arguments/x" if code else "")


@pytest.mark.parametrize(("row", "verdict"), CALLS)
def test_calls(row, verdict):
    functions = {
        name: doc({key: {"type": "integer"} for key in required + optional}, required)
        for name, (required, optional) in row["functions"].items()
    }
    calls = None if verdict["calls"] is None else [tuple(call) for call in verdict["calls"]]
    problem = check(row["answers"], calls, functions, category=verdict.get("category"))
    assert (problem.code if problem else "") == verdict["code"]
    assert problem is None or (problem.message and problem.path == verdict.get("path", problem.path))


def test_an_integer_too_large_for_a_float_is_no_float():
    assert check_argument({"type": "float"}, [1.0], 10**400)[0] == "type_error"


@pytest.mark.parametrize("schema", [{"type": "Bytes"}, {}, {"type": ["string", "null"]}])
def test_a_type_that_bfcl_does_not_know_is_an_error_of_the_question(schema):
    with pytest.raises(InputError, match="not a type BFCL knows"):
        check_argument(schema, [1], 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("klm"), inner, max_size=3),
    max_leaves=6,
)
SCHEMA = st.builds(
    lambda outer, inner: {"type": outer, "items": {"type": inner}},
    *[st.sampled_from(["string", "integer", "float", "boolean", "array", "tuple", "dict", "any"])] * 2,
)


@given(SCHEMA, st.lists(JSON, max_size=3), JSON)
def test_any_argument_under_any_key_has_a_verdict(schema, accepted, value):
    assert check_argument(schema, accepted, value)[0] in ("", "type_error", "value_error")


@given(st.lists(st.integers(0, 3), max_size=4), st.permutations(range(4)))
def test_calls_with_one_accepted_value_each_may_come_in_any_order(values, order):
    answers = [{"f": {"x": [value]}} for value in values]
    calls = [("f", {"x": values[n]}) for n in order if n < len(values)]
    assert check(answers, calls, {"f": doc({"x": {"type": "integer"}})}, category="parallel") is None


@pytest.mark.parametrize("row", TABLE["matchers"], ids=lambda row: json.dumps(row["accepted"]))
def test_an_answer_key_as_matchers(row):
    [pattern] = convert([{"f": {"x": row["accepted"]}}], {"f": doc({"x": row["schema"]})})
    assert pattern == {"tool": "f", "args": {"x": row["matcher"]}}


def test_a_pattern_has_the_name_of_the_only_function():
    functions = {"a.find": doc({"x": {"type": "integer"}})}
    assert convert([{"find": {}}], functions) == [{"tool": "a.find", "args": {}}]
    assert convert([{"find": {}}], {**functions, "b": doc({})}) == [{"tool": "find", "args": {}}]


def test_a_broken_entry_becomes_a_pattern_without_arguments():
    assert convert([{"deck": [[], ""]}], {}) == [{"tool": "deck"}]


# the raw output, without `calls`, and how many calls it is
RAW = [("[f(x=1)]", 1), ("f(x=1), g.h(y='a')", 2), ("[]", 0), ("No function fits.", 0)]


@pytest.mark.parametrize(("result", "calls"), RAW)
def test_an_output_that_nobody_decoded(result, calls):
    functions = [{"name": "f", "parameters": doc({})}]
    trace = {"format": "bfcl", "id": "q", "question": "?", "result": result, "functions": functions}
    gold = {"format": "bfcl", "category": "irrelevance", "possible_answer": None}
    found = score({"rubric": "bfcl_ast", "trace": trace, "expected": gold})
    assert (len(found.steps), found.verdict) == (calls, "fail" if calls else "pass")


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def questions(shared_data):
    return {row["id"]: row for row in lines(shared_data / "bfcl" / "questions.jsonl.gz")}


@pytest.fixture(scope="module")
def rows(shared_data):
    return lines(shared_data / "bfcl" / "rows.jsonl.gz")


def verdict_on(row, question, *, by_category=True):
    """The verdict on a row; where the model could not write "." in names, it was shown "_" instead."""

    def shown(name):
        return name.replace(".", "_") if row["underscore_to_dot"] else name

    calls = None if row["calls"] is None else [next(iter(call.items())) for call in row["calls"]]
    keyed = question["possible_answer"]
    answers = None if keyed is None else [{shown(name): args for name, args in one.items()} for one in keyed]
    functions = {shown(one["name"]): one["parameters"] for one in question["functions"]}
    return check(answers, calls, functions, category=row["category"] if by_category else None)


KINDS = {
    "ast_decoder:decoder_failed": "wrong_count",
    "relevance_error:decoder_success": "over_call",
    "simple_function_checker:wrong_count": "wrong_count",
    "parallel_function_checker_no_order:wrong_count": "wrong_count",
    "simple_function_checker:missing_required": "missing_required",
    "simple_function_checker:missing_optional": "missing_optional",
}


@pytest.mark.shared_data
@pytest.mark.parametrize("by_category", [True, False], ids=["by category", "by numbers"])
def test_the_official_verdict_and_error_on_every_row(questions, rows, by_category):
    for row in rows:
        problem = verdict_on(row, questions[row["id"]], by_category=by_category)
        official = row["official"]["error_type"]
        assert (problem is None) == row["official"]["valid"], (row, problem)
        if by_category and official and not official.endswith("cannot_find_match"):
            assert problem.code == KINDS.get(official, official.split(":")[0]), (row, problem)


@pytest.mark.shared_data
def test_every_question_converts(questions):
    keyed = [question for question in questions.values() if question["possible_answer"] is not None]
    for question in keyed:
        functions = {function["name"]: function["parameters"] for function in question["functions"]}
        patterns = convert(question["possible_answer"], functions)
        taken = Expectation.model_validate({"calls": patterns})
        assert len(list(taken.list_expected_calls("/expected"))) == len(question["possible_answer"])
        strange = [pattern["tool"] for pattern in patterns if pattern["tool"] not in functions]
        assert strange == (["deck"] if question["id"] == "parallel_multiple_function_179" else [])
    assert len(keyed) == 1000
