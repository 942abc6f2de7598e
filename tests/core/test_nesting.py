"""Every kind of matcher and check, wherever one may stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service import Registry, score
from service.core.checks import Check
from service.core.models.kinds import list_kinds
from service.core.rubric import CHECKS as KNOWN
from service.core.rubric import Rubric
from tests import own_checks  # noqa: F401 (registers the check that stands for the custom ones)
from tests.core.reports import one_check, score_argument

MATCHERS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "any_of": ({"of": [{"kind": "exact", "value": 1}, {"kind": "exact", "value": 2}]}, 2, 3),
    "contains": ({"value": "b"}, "abc", "x"),
    "datetime": ({"value": "2026-05-01"}, "2026-05-01T00:00", "soon"),
    "exact": ({"value": 1}, 1.0, True),
    "json_similar": ({"value": {"a": 1}}, {"a": 1}, []),
    "numeric": ({"value": 5, "tolerance": 1}, 6, 7),
    "one_of": ({"values": [1, "a"]}, "a", "b"),
    "pattern": ({"pattern": "[ab]+"}, "ab", "c"),
    "prefix": ({"value": "a"}, "ab", "ba"),
    "present": ({}, None, ...),
    "range": ({"min": 1, "max": 2}, 2, 3),
    "same_text": ({"value": "two red apples"}, "2 red apples.", "two green apples"),
    "shape": ({"value": {"a": {"kind": "present"}}}, {"a": 1}, 1),
    "similar": ({"value": "hello there"}, "Hello, there!", "bye"),
    "suffix": ({"value": "b"}, "ab", "ba"),
}
"""Kind -> its settings, a value that matches, and one that does not (...: every value does)."""

JUDGED: dict[str, dict[str, Any]] = {"natural_language": {"criterion": "a greeting"}}
"""Kind -> its settings, of those that only a judge can decide."""

PLACES: dict[str, tuple[Any, Any]] = {
    "an argument": (lambda m: m, lambda v: v),
    "an array": (lambda m: [0, m], lambda v: [0, v]),
    "an object": (lambda m: {"k": m}, lambda v: {"k": v}),
    "four levels down": (lambda m: [{"a/b": [{"k": m}]}], lambda v: [{"a/b": [{"k": v}]}]),
    "any_of": (lambda m: {"kind": "any_of", "of": [{"kind": "exact", "value": "neither"}, m]}, lambda v: v),
    "any_of in any_of": (lambda m: {"kind": "any_of", "of": [{"kind": "any_of", "of": [m]}]}, lambda v: v),
    "a shape": (lambda m: {"kind": "shape", "value": [m]}, lambda v: [v]),
    "a shape in any_of in an object": (
        lambda m: {"k": {"kind": "any_of", "of": [{"kind": "shape", "value": {"x": m}}]}},
        lambda v: {"k": {"x": v}},
    ),
}
"""Place -> how an expectation puts a matcher there, and how a call puts a value there."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", MATCHERS)
def test_every_matcher_everywhere(kind, place):
    settings, fits, differs = MATCHERS[kind]
    written, given = PLACES[place]
    matcher = written({"kind": kind, **settings})
    assert score_argument(matcher, given(fits)) == 1
    if differs is not ...:
        assert score_argument(matcher, given(differs)) < 1


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", JUDGED)
def test_what_a_judge_must_say_is_open_everywhere(kind, place):
    """It is no score without a judge, and no matcher where nothing is there to look at."""
    written, given = PLACES[place]
    matcher = written({"kind": kind, **JUDGED[kind]})
    assert score_argument(matcher, given("Hello")) is None
    if place not in ("an argument", "any_of", "any_of in any_of"):
        assert score_argument(matcher, "something of another form") == 0


@pytest.mark.parametrize("kind", MATCHERS)
def test_every_matcher_as_an_answer(kind):
    settings, fits, _ = MATCHERS[kind]
    trace = {"format": "callgrade", "events": [{"assistant": fits if isinstance(fits, str) else "none of that"}]}
    report = score({"rubric": one_check("answer"), "trace": trace, "expected": {"answer": {"kind": kind, **settings}}})
    assert (report.verdict == "pass") == (isinstance(fits, str) or kind == "present")


@pytest.mark.parametrize("kind", [kind for kind in MATCHERS if kind not in ("any_of", "shape")])
@pytest.mark.parametrize("path", ["a", "/a", "/a/k/0"])
def test_every_matcher_as_a_critic_of_the_rubric(kind, path):
    """A critic without a value of its own compares with the one that the expectation gives for its place."""
    settings, fits, _ = MATCHERS[kind]
    own = settings.get("value")
    critic = {"kind": kind, **{k: v for k, v in settings.items() if k != "value" or kind in OWN}}
    deep = path.count("/") > 1
    wanted, given = ({"k": [own]}, {"k": [fits]}) if deep else (own, fits)
    assert score_argument(wanted, given, critics={path: critic}) == 1


OWN = ("contains", "prefix", "suffix")
"""These bring their value in a rubric too."""


SETTINGS: dict[str, dict[str, Any]] = {
    "arcade": {"critics": {"a": {"kind": "numeric", "value_range": [0, 10]}}, "weights": {"a": "high"}},
    "arguments": {"critics": {"/a/b": {"kind": "similar"}}, "weights": {"a": 2}, "extra": "forbid"},
    "bfcl_ast": {"category": "parallel"},
    "custom": {"name": "answered"},
    "cascade": {"evidence": {"kind": "grounding"}, "judge": "result_groundedness"},
    "equivalent": {"normalise": ["nfc", "case_fold"]},
    "future_agi": {"metric": "function_name_match"},
    "judge": {"judge": "argument_plausibility"},
    "schema": {"formats": False, "dialect": "auto", "undeclared": "note"},
    "trajectory": {"mode": "f1"},
}
"""Kind -> settings, of those that have any to show or must have some."""

CHECKS: dict[str, dict[str, Any]] = {kind: SETTINGS.get(kind, {}) for kind in KNOWN}
"""Kind -> settings."""


@pytest.mark.parametrize("kind", CHECKS)
def test_every_check_in_a_rubric(kind):
    written = one_check(kind, **CHECKS[kind])
    read = Rubric.model_validate(written)
    assert type(read.criteria[0].check) is list_kinds(Check)[kind]
    again = Rubric.model_validate(json.loads(read.model_dump_json(exclude_unset=True)))
    assert again.digest == read.digest
    report = score({"rubric": written, "trace": TRACE, "expected": EXPECTED, "judges": "off"})
    wanted = "undecided" if kind in ("judge", "cascade") else "not_applicable" if kind in IDLE else "pass"
    assert report.verdict == wanted, f"a check that says nothing of TRACE stands in IDLE: {kind}"


@pytest.mark.parametrize("rubric", [rubric.id for rubric in Registry()])
@pytest.mark.parametrize("kind", CHECKS)
def test_every_check_in_every_rubric(kind, rubric):
    """It says there what it says alone."""
    criterion = {"id": "nested", "stage": "decide", "check": {"kind": kind, **CHECKS[kind]}}
    values: list[float | None] = []
    for among in ({"id": "alone"}, {"extends": rubric, "compat": False}):
        written = {**among, "criteria": [criterion]}
        report = score({"rubric": written, "trace": TRACE, "expected": EXPECTED, "judges": "off"})
        values += [one.value for one in report.criteria if one.id == "nested"]
    assert values[0] == values[1]


TRACE = {
    "format": "callgrade",
    "tools": [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}, {"name": "g"}],
    "events": [{"user": "Take 1."}, {"call": {"name": "f", "arguments": {"a": 1}}, "result": {"left": 7}},
     {"assistant": "Left: 7."}],
    "state": {"initial": {"taken": 0}, "final": {"taken": 1}},
}  # fmt: skip
EXPECTED = {
    "ordered": [{"tool": "f", "args": {"a": 1}, "result": {"left": 7}}],
    "counts": {"f": 1},
    "disallowed": [{"tool": "g"}],
    "answer": "Left: 7.",
    "said": {"kind": "contains", "value": "7"},
    "state": {"changes": [{"path": "/taken", "value": 1}]},
    "output": "Left: 7.",
}
"""A trace of which every check that needs no judge and no error has something to say, and it is good."""
IDLE = ("bfcl_multi_turn", "cascade", "judge", "recovery")


@pytest.mark.parametrize("kind", CHECKS)
def test_a_check_takes_no_setting_it_does_not_know(kind):
    with pytest.raises(ValueError, match="nonsense"):
        Rubric.model_validate(one_check(kind, nonsense=1))
