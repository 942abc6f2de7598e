"""Criteria in words, wherever an expectation may have one: asked of a judge, and combined with what code decides beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service import Plan, Report, conclude, plan
from service.core.judging.notes import JudgeReply, Vote
from service.core.judging.prompts import Usage
from service.core.judging.questions import build_question
from service.core.judging.replies import Judgement
from service.core.outcome import Errored, Outcome, Scored, Skipped
from tests.core.reports import outcomes
from tests.tables import read_rows

VALUES = {"meets": 1.0, "partly": 0.5, "fails": 0.0}
DOWN = Errored("timeout", "no answer in time")


def words(criterion: str = "polite", **fields: Any) -> dict[str, Any]:
    return {"kind": "natural_language", "criterion": criterion, **fields}


def vote(label: str) -> tuple[Vote, ...]:
    said = Judgement(label, VALUES[label], f"it {label}", ("q",))
    return (JudgeReply(said, "m", "m", "miss", Usage(3, 1, 0.5)),)


def call(arguments: Any = None, result: Any = "sent", tool: str = "f") -> dict[str, Any]:
    return {"call": {"name": tool, "arguments": arguments or {}}, "result": result}


def made(kind: str, events: list[dict[str, Any]], expected: dict[str, Any], **fields: Any) -> Plan:
    """The plan of a rubric with one criterion, named as its check."""
    criteria = [{"id": kind, "stage": "arguments", "must_pass": True, "check": {"kind": kind, **fields}}]
    trace = {"format": "callgrade", "events": [{"user": "Go"}, *events]}
    return plan({"rubric": {"id": "case", "criteria": criteria}, "trace": trace, "expected": expected})


def one(report: Report, criterion: str) -> Outcome:
    """The one outcome of a criterion."""
    (found,) = outcomes(report, criterion)
    return found


def told(asked: Plan, *labels: str) -> Outcome:
    """The outcome where the questions are answered with these labels in turn; `down` for a fault."""
    answers = [(DOWN,) if label == "down" else vote(label) for label in labels]
    replies = {ask.key: answer for ask, answer in zip(asked.asks, answers, strict=True)}
    return one(conclude(asked, replies), asked.criteria[0].criterion.id)


def calls(args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "f", "args": args, **more}]}


# Where words may stand, and what is then asked: the place, the words and the value

GIVEN = {"a": "Dear all", "b": 1}


@pytest.mark.parametrize(("kind", "events", "expected", "want"), read_rows("judges/words_asked.yaml"))
def test_what_is_asked(kind: str, events: list[dict[str, Any]], expected: dict[str, Any], want: list[Any]) -> None:
    asked = made(kind, events, expected)
    assert [[ask.place, ask.words, ask.value] for ask in asked.asks] == want
    assert len({ask.key for ask in asked.asks}) == len(want)
    for ask in asked.asks:
        parts = {part.name: part.value for part in build_question(ask, asked.trace).parts}
        assert parts == {"criterion": ask.words, "value": ask.value}


# What comes of it

BESIDE = calls({"a": words(), "b": 1}, weights={"a": 3, "b": 1})
WRONG = calls({"a": words(), "b": 2})
FREE = calls({"a": words(), "b": 2}, weights={"a": 1, "b": 0})
BAN = {"disallowed": [{"tool": "f", "args": {"a": words("rude"), "b": 1}}]}
ANSWER = {"answer": words()}
EVENTS = [call(GIVEN), {"assistant": "Dear all"}]


@pytest.mark.parametrize(("kind", "expected", "labels", "want"), read_rows("judges/words_judged.yaml"))
def test_what_comes_of_replies(kind: str, expected: dict[str, Any], labels: list[str], want: Any) -> None:
    found = told(made(kind, EVENTS, expected), *labels)
    if want == "down":
        assert isinstance(found, Errored)
        assert replace(found, bounds=None) == DOWN
        return
    assert isinstance(found, Scored)
    assert [found.value, found.passed] == [pytest.approx(want[0]), want[1]]
    assert bool(found.findings) is not found.passed


UNANSWERED: list[tuple[str, dict[str, Any], Any]] = [
    ("arguments", BESIDE, "not_asked"),
    ("arguments", WRONG, (0.0, False)),
    ("arguments", FREE, "not_asked"),
    ("answer", ANSWER, "not_asked"),
    ("said", {"said": words()}, "not_asked"),
    ("disallowed", BAN, "not_asked"),
    ("results", {"calls": [{"tool": "f", "result": words()}]}, "not_asked"),
]


@pytest.mark.parametrize("replies", [None, {}])
@pytest.mark.parametrize(("kind", "expected", "want"), UNANSWERED)
def test_without_a_judge_a_failure_stands_and_nothing_passes(
    kind: str, expected: dict[str, Any], want: Any, replies: Any
) -> None:
    asked = made(kind, EVENTS, expected)
    report = conclude(asked, replies)
    found = one(report, kind)
    if isinstance(found, Scored):
        assert (found.value, found.passed) == want
        assert report.verdict == "fail"
    else:
        assert isinstance(found, Skipped)
        assert found.cause == want
        assert (report.verdict, report.coverage, report.score) == ("undecided", 0.0, None)
    assert [(one.criterion, one.judge) for one in report.not_asked] == [(kind, "natural_language")]
