"""Expectations as users write them: what is refused and where, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from service import InputError, score
from service.core.expectations.expectation import Expectation
from service.core.expectations.merging import merge_expectations
from service.registry import Registry, read_rubric
from tests.core.reports import score_argument
from tests.tables import DATA, read_rows, read_yaml

EXPECTATION: TypeAdapter[Expectation] = TypeAdapter(Expectation)


def refused(expected: Any, **more: Any) -> list[tuple[str, str]]:
    """The problems of a request with this expectation."""
    with pytest.raises(InputError) as caught:
        score({"trace": {"format": "callgrade", "events": []}, "expected": expected, **more})
    return [(problem.path, problem.message) for problem in caught.value.problems]


def args(value: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "f", "args": {"a": value}}]}


@pytest.mark.parametrize(("expected", "path", "message"), read_rows("expectations/refused.yaml"))
def test_refused(expected, path, message):
    assert [said for place, said in refused(expected) if place == path and message in said]


@pytest.mark.parametrize(
    ("name", "meant"), [("never", "disallowed"), ("allow", "allowed"), ("disallowed", "disallowed")]
)
def test_what_belongs_into_an_expectation_is_told_its_place(name, meant):
    hint = f"no field of that name is known here; did you mean 'expected.{meant}'?"
    assert (f"/{name}", hint) in refused({"calls": "some"}, **{name: ["f"]})
    assert (f"/rubric/{name}", hint) in refused({"calls": "some"}, rubric={"extends": "four_step", name: ["f"]})


@pytest.mark.parametrize(("written", "no_calls", "says", "paths"), read_yaml(DATA / "expectations" / "calls.yaml"))
def test_what_it_comes_to(written, no_calls, says, paths):
    expectation = EXPECTATION.validate_python(written)
    assert (expectation.no_calls, expectation.says_calls) == (no_calls, says)
    assert [
        wanted.path
        for section in expectation.list_sections().sections
        for wanted in section.scope.list_expected_calls("/expected", section.turn)
    ] == paths


@pytest.mark.parametrize(
    "value", [{"kind": "exact", "value": 1}, {"kind": "nope"}, {"kind": None}, [{"kind": "present"}]]
)
def test_a_literal_that_looks_like_a_matcher_is_written_as_exact(value):
    assert score_argument({"kind": "exact", "value": value}, value) == 1
    assert score_argument({"kind": "exact", "value": value}, 1) == 0
    assert score_argument([{"kind": "exact", "value": value}], [value]) == 1


# What a rubric expects of every trace, beside `tests/data/gates/standing.yaml`; arguments that do not matter.

TABLES = read_yaml(DATA / "rubrics" / "standing_null.yaml")

MADE = {"to": "Ann", "request_id": "f3c1-77"}


def paying(arguments: dict[str, Any]) -> dict[str, Any]:
    events = [{"user": "Pay Ann."}, {"call": {"name": "pay", "arguments": arguments}}]
    return {"format": "callgrade", "tools": [{"name": "pay"}], "events": events}


def test_a_message_must_hold_for_both():
    both = merge_expectations(Expectation(said="a"), Expectation(said=["b", "c"]))
    assert both is not None
    assert both.said == ["a", "b", "c"]


@pytest.mark.parametrize(("own", "standing", "output"), TABLES["nulls"])
def test_null_says_something_of_an_output_alone(own: dict[str, Any], standing: dict[str, Any], output: bool):
    words = {"answer": "paid", "state": {"changes": []}, "allow_extra": False, **standing}
    silent = {"calls": "some", "answer": None, "state": None, "allow_extra": None, **own}
    both = merge_expectations(Expectation.model_validate(silent), Expectation.model_validate(words))
    assert both is not None
    assert (both.answer, both.allow_extra, both.gold) == ("paid", False, standing.get("gold"))
    assert both.state is not None
    assert (both.says_output, both.output) == (output, None)


IGNORED = [["request_id"], ["*_id"], ["pay.request_*"]]


@pytest.mark.parametrize("names", IGNORED)
@pytest.mark.parametrize("rubric", ["four_step", "three_layer", "uipath_tool_call_args"])
def test_an_argument_that_does_not_matter_changes_nothing(names: list[str], rubric: str):
    listed = {"calls": [{"tool": "pay", "args": {**MADE, "request_id": "another"}}]}
    request = {"trace": paying(MADE), "judges": "off", "rubric": rubric}
    for expected in ({"calls": [{"tool": "pay", "args": {"to": "Ann"}}]}, listed):
        assert score({**request, "expected": {**expected, "ignore_args": names}}).failing == ()
        assert score({**request, "expected": listed}).failing != ()


def find(extension: dict[str, Any], registry: Registry = Registry()) -> Any:  # noqa: B008 (the packaged rubrics never change)
    return registry.find(read_rubric({"extends": "four_step", **extension}))


def test_a_weight_of_no_criterion_is_an_error():
    with pytest.raises(InputError) as error:
        find({"weights": {"groundedness": 1}})
    assert error.value.problems[0].path == "/rubric/weights"


def test_the_digest_of_a_rubric_that_expects_nothing_is_the_old_one_and_any_other_reads_back():
    standing = find({"expected": {"state": {"changes": []}, "ignore_args": ["a"]}})
    again = read_rubric(standing.model_dump(mode="json"))
    assert again.digest == standing.digest != find({}).digest


def test_it_may_come_from_nowhere():
    request = {"trace": paying({"to": "Ann", "order_id": "ORD-118822"}), "judges": "off"}
    assert [one.code for one in score(request).findings()] == ["identifier_from_nowhere"]
    rubric = {"extends": "four_step", "expected": {"ignore_args": ["order_id"]}}
    assert score({**request, "rubric": rubric}).findings() == []
