"""How outcomes become scores, coverage and verdicts: judges' replies stand for outcomes of any kind."""

from __future__ import annotations

from typing import Any

import pytest

from service import Report, conclude, plan, score
from service.core.outcome import Errored, Outcome, Scored, Skipped
from tests.tables import DATA, named, read_yaml

JUDGE = {"id": "any", "level": "trace", "question": "?", "scale": {"yes": 1.0, "no": 0.0}}
AT_STEPS = {"id": "step", "level": "step", "question": "?", "scale": {"yes": 1.0, "no": 0.0}}
DOWN = Errored("provider", "no answer")
GONE = Skipped("not_captured", "not there")
LONG = Skipped("too_long", "too long")
FREE = Skipped("not_applicable", "nothing to see")
HELD = Skipped("blocked", "blocked by another")


def ok(value: float) -> Scored:
    return Scored(value, True)


def bad(value: float) -> Scored:
    return Scored(value, False)


def criterion(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "stage": "arguments", "check": {"kind": "judge", "judge": "any"}, **fields}


def reported(outcomes: dict[str, Outcome], settings: dict[str, dict[str, Any]] | None = None, **rubric: Any) -> Report:
    """The report of a rubric with one criterion for each outcome, in the stage `arguments` unless settings say otherwise."""
    criteria = [criterion(name, **(settings or {}).get(name, {})) for name in outcomes]
    body = {
        "rubric": {"id": "case", "criteria": criteria, "judges": [JUDGE], **rubric},
        "trace": {"format": "callgrade", "events": [{"user": "Hi"}]},
    }
    return conclude(plan(body), {f"{name}/": outcome for name, outcome in outcomes.items()})


FOLDS = read_yaml(DATA / "verdicts" / "folds.yaml")
CAUSES = {"down": DOWN, "gone": GONE, "long": LONG, "free": FREE, "held": HELD}


def parse(text: str) -> Outcome:
    word, _, value = text.partition(" ")
    return Scored(float(value), word == "pass") if value else CAUSES[word]


@pytest.mark.parametrize(("outcomes", "settings", "value", "coverage", "verdict"), named(FOLDS["sums"]))
def test_scores_and_coverage(outcomes, settings, value, coverage, verdict):
    report = reported({name: parse(one) for name, one in outcomes.items()}, settings)
    assert report.score == (None if value is None else pytest.approx(value))
    assert report.coverage == (None if coverage is None else pytest.approx(coverage))
    assert report.verdict == verdict


BAND = {"pass": (1.0, 0.9, 0.9 - 1e-12), "warn": (0.8999, 0.85, 0.8), "fail": (0.7999, 0.0)}


@pytest.mark.parametrize(("value", "verdict"), [(value, verdict) for verdict, all_ in BAND.items() for value in all_])
def test_the_band_between_fail_and_warn(value, verdict):
    assert reported({"a": ok(value)}).verdict == verdict


STAGED = {"a": {"stage": "decide"}, "b": {"stage": "arguments"}, "c": {"stage": "arguments"}}


def test_stages_weigh_the_same_however_many_criteria_they_have():
    outcomes = {"a": bad(0.0), "b": ok(1.0), "c": ok(1.0)}
    assert reported(outcomes, STAGED).score == pytest.approx(2 / 3)
    assert reported(outcomes, STAGED, stages={}).score == pytest.approx(0.5)
    assert reported(outcomes, STAGED, stages={"decide": 3}).score == pytest.approx(0.25)
    assert reported(outcomes, STAGED, stages={"decide": 0}).score == pytest.approx(1.0)


def test_the_worst_stage_decides_where_the_rubric_says_so():
    outcomes = {"a": bad(0.5), "b": ok(1.0), "c": ok(1.0)}
    settings = {**STAGED, "b": {"stage": "arguments", "weight": 9}}
    assert reported(outcomes, settings).verdict == "pass"
    worst = reported(outcomes, settings, verdict="worst_stage")
    assert (worst.verdict, worst.first_failing_stage, worst.failing) == ("fail", "decide", ("a",))


def test_a_failed_blocking_criterion_fails_whatever_the_score_and_coverage():
    outcomes = {"a": bad(0.99), "b": DOWN, "c": DOWN}
    report = reported(outcomes, {"a": {"blocking": True}})
    assert (report.verdict, report.score, report.coverage) == ("fail", 0.99, pytest.approx(1 / 3))


def test_the_verdict_of_the_check_goes_before_its_value():
    """A similarity of 0.75 may have passed, one of 0.95 may not."""
    assert reported({"a": ok(0.75)}, {"a": {"blocking": True}}).all_passed
    assert reported({"a": bad(0.95)}).failing == ("a",)
    assert reported({"a": bad(0.95)}, {"a": {"must_pass": True}}).verdict == "fail"


@pytest.mark.parametrize(
    ("outcome", "verdict"), [(DOWN, "undecided"), (FREE, "pass"), (ok(0.1), "pass"), (bad(0.9), "fail")]
)
def test_what_must_pass_and_is_not_known(outcome, verdict):
    settings = {"a": {"weight": 99}, "b": {"weight": 0, "must_pass": True}}
    assert reported({"a": ok(1.0), "b": outcome}, settings).verdict == verdict


@pytest.mark.parametrize(("outcomes", "clean"), FOLDS["all_passed"])
def test_all_passed(outcomes, clean):
    assert reported({name: parse(one) for name, one in outcomes.items()}).all_passed is clean


def _steps(outcomes: list[Outcome], **fields: Any) -> Report:
    """The report of one criterion that looks at each step."""
    asked = {"id": "a", "stage": "arguments", "check": {"kind": "judge", "judge": "step"}, **fields}
    body = {
        "rubric": {"id": "case", "criteria": [asked], "judges": [AT_STEPS]},
        "trace": {"format": "callgrade", "events": [{"call": {"name": "f"}} for _ in outcomes]},
    }
    return conclude(plan(body), {f"a/{n}": outcome for n, outcome in enumerate(outcomes)})


@pytest.mark.parametrize(("outcomes", "aggregate", "value", "coverage"), FOLDS["steps"])
def test_outcomes_of_steps(outcomes, aggregate, value, coverage):
    report = _steps([parse(one) for one in outcomes], aggregate=aggregate)
    assert (report.criteria[0].value, report.coverage) == (value, coverage)


def test_each_step_has_its_own_verdict():
    report = _steps([ok(1.0), bad(0.85), bad(0.0), DOWN, FREE, HELD])
    assert [step.verdict for step in report.steps] == ["pass", "warn", "fail", "undecided", "not_applicable", "fail"]
    assert [step.score for step in report.steps] == [1.0, 0.85, 0.0, None, None, 0.0]


def test_what_was_expected_is_named_by_pointer():
    expected = {"calls": [{"tool": "f", "args": {"a": 1}}, {"tool": "g", "args": {}}]}
    places = ["/expected/calls/0", "/expected/calls/1"]
    calls = [{"call": {"name": "f", "arguments": {"a": 2}}}, {"call": {"name": "x"}}]
    found = score({"trace": {"format": "callgrade", "events": calls}, "expected": expected})
    assert [(step.matched, step.expected) for step in found.steps] == [*enumerate(places)]
    found = score({"trace": {"format": "callgrade", "events": []}, "expected": expected})
    assert [o.expected for c in found.criteria if c.id == "tool_name" for o in c.outcomes] == places
    assert [(each.expected, each.tool) for each in found.missing] == [*zip(places, "fg", strict=True)]
