"""Expectations as users write them: what is refused and where, and what they come to."""

# ruff: noqa: E501 (a row of a table stays on its line)
from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from service import InputError, score
from service.core.critics import Critic
from service.core.expectations.expectation import Expectation
from service.core.expectations.templates import has_matcher
from service.core.models.kinds import list_kinds

KNOWN = ", ".join(sorted(list_kinds(Critic)))
EXPECTATION: TypeAdapter[Expectation] = TypeAdapter(Expectation)


def refused(expected: Any, **more: Any) -> list[tuple[str, str]]:
    """The problems of a request with this expectation."""
    with pytest.raises(InputError) as caught:
        score({"trace": {"format": "callgrade", "events": []}, "expected": expected, **more})
    return [(problem.path, problem.message) for problem in caught.value.problems]


def args(value: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "f", "args": {"a": value}}]}


ANYHOW = ""  # where pydantic says what is wrong, the place is what counts
EMPTY = "an expectation says what should have happened: calls (or `none`), ordered, counts, answer, state, ..."
REFUSED = [
    ("nothing", {}, "/expected", EMPTY),
    ("only what extra calls do", {"allow_extra": True}, "/expected", EMPTY),
    ("a word that is none", {"calls": "maybe"}, "/expected/calls", ANYHOW),
    ("no tool", {"calls": [{"args": {}}]}, "/expected/calls/0/tool", ANYHOW),
    ("an unnamed tool", {"ordered": [{"tool": ""}]}, "/expected/ordered/0/tool", ANYHOW),
    ("a misspelt field", {"calls": [{"tool": "f", "arg": 1}]}, "/expected/calls/0/arg", "no field of that name is known here"),
    ("an unknown field", {"calls": "none", "nope": 1}, "/expected/nope", "no field of that name is known here"),
    ("a string where a list is due", {"ordered": "f"}, "/expected/ordered", ANYHOW),
    ("an empty group", {"ordered": [{"any_order": []}]}, "/expected/ordered/0/any_order", ANYHOW),
    ("both ways", {"calls": [{"tool": "f"}], "ordered": [{"tool": "f"}]}, "/expected",
     "calls are given as `calls`, or as `ordered` and `unordered`, not both"),
    ("none, and one", {"calls": "none", "unordered": [{"tool": "f"}]}, "/expected",
     "no call is expected here, and yet some are listed"),
    ("an unknown kind", args({"kind": "nope"}), "/expected/calls/0/args/a", f"no kind 'nope' is known; known: {KNOWN}"),
    ("an unknown kind at depth", args([1, {"b/c": {"kind": "nope"}}]), "/expected/calls/0/args/a/1/b~1c",
     f"no kind 'nope' is known; known: {KNOWN}"),
    ("an unknown kind in a matcher", args({"kind": "any_of", "of": [{"kind": "present"}, {"kind": "nope"}]}),
     "/expected/calls/0/args/a/of/1", f"no kind 'nope' is known; known: {KNOWN}"),
    ("an unknown kind in a shape", args({"kind": "shape", "value": [{"kind": "nope"}]}), "/expected/calls/0/args/a/value/0",
     f"no kind 'nope' is known; known: {KNOWN}"),
    ("a matcher without its value", args({"kind": "exact"}), "/expected/calls/0/args", "a: the exact matcher needs a value here"),
    ("one at depth", args([{"b": {"kind": "similar"}}]), "/expected/calls/0/args", "a/0/b: the similar matcher needs a value here"),
    ("one of several", args({"kind": "any_of", "of": [{"kind": "present"}, {"kind": "numeric"}]}), "/expected/calls/0/args",
     "a: the any_of matcher needs a value here"),
    ("an answer without its value", {"answer": {"kind": "exact"}}, "/expected/answer", "the matcher: the exact matcher needs a value here"),
    ("an unknown field of a matcher", args({"kind": "range", "mim": 1}), "/expected/calls/0/args/a/mim",
     "no field of that name is known here"),
    *[(f"a ban under the name {name}", {"calls": "some", name: ["f"]}, f"/expected/{name}", "did you mean 'disallowed'?")
      for name in ("never", "forbidden", "forbid", "denied", "disallow", "not_allowed", "blacklist")],
    *[(f"what is allowed under the name {name}", {name: ["f"]}, f"/expected/{name}", "did you mean 'allowed'?")
      for name in ("allow", "only", "allowlist", "allowed_tools")],
    ("a ban of another name in a turn", {"turns": [{"turn": 1, "never": ["f"]}]}, "/expected/turns/0/never",
     "did you mean 'disallowed'?"),
    ("exceptions under another name", {"disallowed": [{"tool": "*", "except": ["f"]}]}, "/expected/disallowed/0/except",
     "did you mean 'but'?"),
    ("what is allowed as objects", {"allowed": [{"tool": "f"}]}, "/expected/allowed/0", "expected a string"),
    ("an optional call where none is due", {"calls": "none", "optional": [{"tool": "f"}]}, "/expected", "`allowed`"),
    ("a negative weight", {"calls": [{"tool": "f", "weights": {"a": -0.5}}]}, "/expected/calls/0/weights/a",
     ANYHOW),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "path", "message"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
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


@pytest.mark.parametrize(
    ("written", "no_calls", "says", "paths"),
    [
        ({"calls": "none"}, True, True, []),
        ({"calls": []}, True, True, []),
        ({"calls": [], "optional": [{"tool": "f"}]}, False, True, ["/expected/optional/0"]),
        ({"calls": "some"}, False, True, []),
        ({"calls": [{"tool": "f"}, {"tool": "g"}]}, False, True, ["/expected/calls/0", "/expected/calls/1"]),
        ({"ordered": [{"tool": "f"}], "unordered": [{"tool": "g"}]}, False, True, ["/expected/ordered/0", "/expected/unordered/0"]),
        ({"ordered": [{"any_of": [{"tool": "f"}, {"tool": "g"}]}]}, False, True, ["/expected/ordered/0/any_of/0"]),
        ({"ordered": [{"any_order": [{"tool": "f"}, {"tool": "g"}]}]}, False, True,
         ["/expected/ordered/0/any_order/0", "/expected/ordered/0/any_order/1"]),
        ({"answer": "Hi"}, False, False, []),
    ],
)  # fmt: skip
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
