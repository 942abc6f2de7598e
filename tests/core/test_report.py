"""How outcomes become scores, coverage and verdicts: judges' replies stand for outcomes of any kind."""

from __future__ import annotations

from typing import Any

import pytest

from service import Report, conclude, plan
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


STAGED = {"a": {"stage": "decide"}, "b": {"stage": "arguments"}, "c": {"stage": "arguments"}}


def test_the_worst_stage_decides_where_the_rubric_says_so():
    outcomes = {"a": bad(0.5), "b": ok(1.0), "c": ok(1.0)}
    settings = {**STAGED, "b": {"stage": "arguments", "weight": 9}}
    assert reported(outcomes, settings).verdict == "pass"
    worst = reported(outcomes, settings, verdict="worst_stage")
    assert (worst.verdict, worst.first_failing_stage, worst.failing) == ("fail", "decide", ("a",))


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
