"""Expectations as users write them: what is refused and where, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from service import InputError, score
from service.core.expectations.expectation import Expectation
from service.core.expectations.templates import has_matcher
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


def test_every_problem_is_named():
    wrong = {"calls": [{"tool": "f", "args": {"a": {"kind": "nope"}}}, {"tool": ""}, {"tol": "f"}]}
    places = ["/expected/calls/0/args/a", "/expected/calls/1/tool", "/expected/calls/2/tool", "/expected/calls/2/tol"]
    assert [path for path, _ in refused(wrong)] == places


@pytest.mark.parametrize(("written", "no_calls", "says", "paths"), read_yaml(DATA / "expectations" / "calls.yaml"))
def test_what_it_comes_to(written, no_calls, says, paths):
    expectation = EXPECTATION.validate_python(written)
    assert (expectation.no_calls, expectation.says_calls) == (no_calls, says)
    assert [
        wanted.path
        for section in expectation.list_sections().sections
        for wanted in section.scope.list_expected_calls("/expected", section.turn)
    ] == paths


LITERALS = [
    1,
    1.5,
    True,
    None,
    "",
    "kind",
    [],
    {},
    [1, [2]],
    {"a": {"b": [None]}},
    {"kinds": "exact"},
    [["kind", "exact"]],
]


@pytest.mark.parametrize("value", LITERALS, ids=repr)
def test_a_literal_stands_for_itself(value):
    given = EXPECTATION.validate_python(args(value)).calls[0].args["a"]
    assert given == value
    assert type(given) is type(value)
    assert not has_matcher(given)
    assert scored(value, value) == 1


@pytest.mark.parametrize(
    "value", [{"kind": "exact", "value": 1}, {"kind": "nope"}, {"kind": None}, [{"kind": "present"}]]
)
def test_a_literal_that_looks_like_a_matcher_is_written_as_exact(value):
    assert scored({"kind": "exact", "value": value}, value) == 1
    assert scored({"kind": "exact", "value": value}, 1) == 0
    assert scored([{"kind": "exact", "value": value}], [value]) == 1


def scored(wanted: Any, given: Any) -> float | None:
    """The score of one argument against what is wanted of it."""
    rubric = {"id": "one", "criteria": [{"id": "it", "stage": "arguments", "check": {"kind": "arguments"}}]}
    trace = {"format": "callgrade", "events": [{"call": {"name": "f", "arguments": {"a": given}}}]}
    return score({"rubric": rubric, "trace": trace, "expected": args(wanted)}).score
