"""BFCL's verdicts, rule by rule and on every packaged row."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from service import score
from service.core.expectations.expectation import Expectation
from service.core.methods.bfcl_number import check, convert
from service.errors import InputError

TABLE = yaml.safe_load((Path(__file__).parents[1] / "data" / "carried" / "bfcl.yaml").read_text())


def doc(name, properties, required=()):
    return {"name": name, "parameters": {"type": "dict", "properties": properties, "required": list(required)}}


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
    verdict = check([{"f": {"x": accepted}}], [("f", {"x": value})], [doc("f", {"x": schema})])
    assert (verdict.code, verdict.valid) == (code, code == "")
    assert verdict.path == ("/steps/0/call/arguments/x" if code else "")


@pytest.mark.parametrize(("row", "verdict"), CALLS)
def test_calls(row, verdict):
    functions = [
        doc(name, {key: {"type": "integer"} for key in required + optional}, required)
        for name, (required, optional) in row["functions"].items()
    ]
    calls = None if verdict["calls"] is None else [tuple(call) for call in verdict["calls"]]
    found = check(
        row["answers"],
        calls,
        functions,
        category=verdict.get("category"),
        underscore_to_dot=verdict.get("underscore_to_dot", False),
    )
    assert (found.code, found.valid) == (verdict["code"], verdict["code"] == "")
    assert found.path == verdict.get("path", found.path)
    assert bool(found.message) is not found.valid


def test_a_tuple_is_a_list_only_where_a_tuple_is_declared():
    def code(declared):
        schema = {"type": declared, "items": {"type": "integer"}}
        return check([{"f": {"x": [[1, 2]]}}], [("f", {"x": (1, 2)})], [doc("f", {"x": schema})]).code

    assert (code("tuple"), code("array")) == ("", "type_error")


def test_an_integer_too_large_for_a_float_is_no_float():
    verdict = check([{"f": {"x": [1.0]}}], [("f", {"x": 10**400})], [doc("f", {"x": {"type": "float"}})])
    assert verdict.code == "type_error"


@pytest.mark.parametrize("schema", [{"type": "Bytes"}, {}, {"type": ["string", "null"]}])
def test_a_type_that_bfcl_does_not_know_is_an_error_of_the_question(schema):
    with pytest.raises(InputError, match="not a type BFCL knows"):
        check([{"f": {"x": [1]}}], [("f", {"x": 1})], [doc("f", {"x": schema})])


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
    verdict = check([{"f": {"x": accepted}}], [("f", {"x": value})], [doc("f", {"x": schema})])
    assert verdict.code in ("", "type_error", "value_error")


@given(st.lists(st.integers(0, 3), max_size=4), st.permutations(range(4)))
def test_calls_with_one_accepted_value_each_may_come_in_any_order(values, order):
    answers = [{"f": {"x": [value]}} for value in values]
    calls = [("f", {"x": values[n]}) for n in order if n < len(values)]
    assert check(answers, calls, [doc("f", {"x": {"type": "integer"}})], category="parallel").valid


@pytest.mark.parametrize("row", TABLE["matchers"], ids=lambda row: json.dumps(row["accepted"]))
def test_an_answer_key_as_matchers(row):
    [pattern] = convert([{"f": {"x": row["accepted"]}}], [doc("f", {"x": row["schema"]})])
    assert pattern == {"tool": "f", "args": {"x": row["matcher"]}}


def test_a_pattern_has_the_name_of_the_only_function():
    functions = [doc("a.find", {"x": {"type": "integer"}})]
    assert convert([{"find": {}}], functions) == [{"tool": "a.find", "args": {}}]
    assert convert([{"find": {}}], [*functions, doc("b", {})]) == [{"tool": "find", "args": {}}]


def test_a_broken_entry_becomes_a_pattern_without_arguments():
    assert convert([{"deck": [[], ""]}], []) == [{"tool": "deck"}]


# the raw output, without `calls`, and how many calls it is
RAW = [("[f(x=1)]", 1), ("f(x=1), g.h(y='a')", 2), ("[]", 0), ("No function fits.", 0)]


@pytest.mark.parametrize(("result", "calls"), RAW)
def test_an_output_that_nobody_decoded(result, calls):
    trace = {"format": "bfcl", "id": "q", "question": "?", "result": result, "functions": [doc("f", {})]}
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


def verdict_on(row, question, *, category, underscore_to_dot):
    calls = None if row["calls"] is None else [next(iter(call.items())) for call in row["calls"]]
    answers, functions = question["possible_answer"], question["functions"]
    return check(answers, calls, functions, category=category, underscore_to_dot=underscore_to_dot)


@pytest.mark.shared_data
@pytest.mark.parametrize("by_category", [True, False], ids=["by category", "by numbers"])
def test_the_official_verdict_on_every_row(questions, rows, by_category):
    seen = Counter()
    for row in rows:
        category = row["category"] if by_category else None
        dots = row["underscore_to_dot"]
        verdict = verdict_on(row, questions[row["id"]], category=category, underscore_to_dot=dots)
        assert verdict.valid == row["official"]["valid"], (row, verdict)
        seen[verdict.valid] += 1
    assert seen == {True: 5716, False: 1724}


KINDS = {
    "ast_decoder:decoder_failed": "wrong_count",
    "relevance_error:decoder_success": "over_call",
    "simple_function_checker:wrong_count": "wrong_count",
    "parallel_function_checker_no_order:wrong_count": "wrong_count",
    "simple_function_checker:missing_required": "missing_required",
    "simple_function_checker:missing_optional": "missing_optional",
}


@pytest.mark.shared_data
def test_the_code_says_what_the_official_error_says(questions, rows):
    for row in rows:
        official = row["official"]["error_type"]
        if official is None or official.endswith("cannot_find_match"):
            continue
        verdict = verdict_on(
            row, questions[row["id"]], category=row["category"], underscore_to_dot=row["underscore_to_dot"]
        )
        assert verdict.code == KINDS.get(official, official.split(":")[0]), (row, verdict)


@pytest.mark.shared_data
def test_names_with_dots_decide_thousands_of_verdicts(questions, rows):
    changed = 0
    for row in rows:
        question, dots = questions[row["id"]], row["underscore_to_dot"]
        if question["possible_answer"] is None:
            continue
        other = verdict_on(row, question, category=row["category"], underscore_to_dot=not dots)
        changed += other.valid != row["official"]["valid"]
    assert changed == 2485


@pytest.mark.shared_data
def test_every_question_converts(questions):
    keyed = [question for question in questions.values() if question["possible_answer"] is not None]
    for question in keyed:
        names = {function["name"] for function in question["functions"]}
        patterns = convert(question["possible_answer"], question["functions"])
        taken = Expectation.model_validate({"calls": patterns})
        assert len(list(taken.list_expected_calls("/expected"))) == len(question["possible_answer"])
        strange = [pattern["tool"] for pattern in patterns if pattern["tool"] not in names]
        assert strange == (["deck"] if question["id"] == "parallel_multiple_function_179" else [])
    assert len(keyed) == 1000
