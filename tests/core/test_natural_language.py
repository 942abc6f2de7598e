"""Criteria in words, wherever an expectation may have one: asked of a judge, and combined with what code decides beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service import Plan, Report, conclude, plan
from service.core.judging.judged_outcomes import MixedScore
from service.core.judging.notes import JudgeReply, Vote
from service.core.judging.prompts import Usage
from service.core.judging.questions import build_question
from service.core.judging.replies import Judgement
from service.core.outcome import (
    Errored,
    Finding,
    Outcome,
    Scored,
    Skipped,
)

VALUES = {"meets": 1.0, "partly": 0.5, "fails": 0.0}
DOWN = Errored("timeout", "no answer in time")
A, B = "/steps/0/call/arguments/a", "/steps/0/call/arguments/b"


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
    of_steps = [step.outcomes[criterion] for step in report.steps if criterion in step.outcomes]
    (found,) = [*of_steps, *(o.outcome for c in report.criteria if c.id == criterion for o in c.outcomes)]
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
PLACES: list[tuple[str, str, list[dict[str, Any]], dict[str, Any], list[tuple[str, str, Any]]]] = [
    ("an argument", "arguments", [call(GIVEN)], calls({"a": words(), "b": 1}), [(A, "polite", "Dear all")]),
    ("two arguments", "arguments", [call(GIVEN)], calls({"a": words(), "b": words("even")}),
     [(A, "polite", "Dear all"), (B, "even", 1)]),
    ("inside an argument", "arguments", [call({"a": {"x": "Hi", "y": 2}})], calls({"a": {"x": words(), "y": 2}}),
     [(A, "polite", "Hi")]),
    ("inside a shape", "arguments", [call({"a": ["Hi", 2]})], calls({"a": {"kind": "shape", "value": [words(), 2]}}),
     [(A, "polite", "Hi")]),
    ("one of several ways", "arguments", [call(GIVEN)],
     calls({"a": {"kind": "any_of", "of": [{"kind": "exact", "value": "x"}, words()]}, "b": 1}),
     [(A, "polite", "Dear all")]),
    ("where another way fits", "arguments", [call(GIVEN)],
     calls({"a": {"kind": "any_of", "of": [words(), {"kind": "exact", "value": "Dear all"}]}, "b": 1}), []),
    ("an argument that is not there", "arguments", [call({"b": 1})], calls({"a": words(), "b": 1}), []),
    ("an optional one that is not there", "arguments", [call({"b": 1})], calls({"a": words(optional=True), "b": 1}),
     []),
    ("null", "arguments", [call({"a": None})], calls({"a": words()}), [(A, "polite", None)]),
    ("a name that needs escapes", "arguments", [call({"a/b": "x"})], calls({"a/b": words()}),
     [("/steps/0/call/arguments/a~1b", "polite", "x")]),
    ("another tool", "arguments", [call(GIVEN, tool="g")], calls({"a": words(), "b": 1}), []),
    ("the answer", "answer", [{"assistant": "Dear all"}], {"answer": words()}, [("/answer", "polite", "Dear all")]),
    ("a turn's answer", "answer", [{"assistant": "Hm"}, {"user": "?"}, {"assistant": "Yes"}],
     {"turns": [{"turn": 1, "answer": words()}]}, [("/messages/1/text", "polite", "Hm")]),
    ("no answer", "answer", [call()], {"answer": words()}, []),
    ("what was said", "said", [{"assistant": "One"}, {"assistant": "Two"}], {"said": words()},
     [("/messages/2/text", "polite", ["One", "Two"])]),
    ("two things that were said", "said", [{"assistant": "One"}], {"said": [words(), words("brief")]},
     [("/messages/1/text", "polite", "One"), ("/messages/1/text", "brief", "One")]),
    ("a result", "results", [call(GIVEN)], {"calls": [{"tool": "f", "result": words("a receipt")}]},
     [("/steps/0/result/content", "a receipt", "sent")]),
    ("a result that is not captured", "results", [{"call": {"name": "f"}}],
     {"calls": [{"tool": "f", "result": words()}]}, []),
    ("a ban", "disallowed", [call(GIVEN)], {"disallowed": [{"tool": "f", "args": {"a": words("rude")}}]},
     [(A, "rude", "Dear all")]),
    ("a ban of something else", "disallowed", [call(GIVEN)],
     {"disallowed": [{"tool": "f", "args": {"a": words("rude"), "b": 2}}]}, []),
    ("a ban of another tool", "disallowed", [call(GIVEN)],
     {"disallowed": [{"tool": "g", "args": {"a": words("rude")}}]}, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "events", "expected", "want"), [case[1:] for case in PLACES], ids=[case[0] for case in PLACES]
)
def test_what_is_asked(
    kind: str, events: list[dict[str, Any]], expected: dict[str, Any], want: list[tuple[str, str, Any]]
) -> None:
    asked = made(kind, events, expected)
    assert [(ask.place, ask.words, ask.value) for ask in asked.asks] == want
    assert len({ask.key for ask in asked.asks}) == len(want)
    for ask in asked.asks:
        parts = {part.name: part.value for part in build_question(ask, asked.trace).parts}
        assert parts == {"criterion": ask.words, "value": ask.value}


def test_a_rubric_may_have_words_for_an_argument() -> None:
    asked = made("arguments", [call(GIVEN)], calls(GIVEN), critics={"a": words()})
    assert [(ask.place, ask.words, ask.value) for ask in asked.asks] == [(A, "polite", "Dear all")]


# What comes of it

BESIDE = calls({"a": words(), "b": 1}, weights={"a": 3, "b": 1})
WRONG = calls({"a": words(), "b": 2})
FREE = calls({"a": words(), "b": 2}, weights={"a": 1, "b": 0})
BOTH = calls({"a": words(), "b": words("even")})
BAN = {"disallowed": [{"tool": "f", "args": {"a": words("rude"), "b": 1}}]}
ANSWER = {"answer": words()}
COMES: list[tuple[str, str, dict[str, Any], list[str], Any]] = [
    ("alone, met", "arguments", calls({"a": words(), "b": {"kind": "present"}}, weights={"b": 0}), ["meets"],
     (1.0, True)),
    ("met", "arguments", BESIDE, ["meets"], (1.0, True)),
    ("partly met", "arguments", BESIDE, ["partly"], (0.25, False)),
    ("failed", "arguments", BESIDE, ["fails"], (0.25, False)),
    ("a fault", "arguments", BESIDE, ["down"], DOWN),
    ("met beside what is wrong", "arguments", WRONG, ["meets"], (0.5, False)),
    ("failed beside what is wrong", "arguments", WRONG, ["fails"], (0.0, False)),
    ("a fault beside what is wrong", "arguments", WRONG, ["down"], (0.0, False)),
    ("met beside what weighs nothing", "arguments", FREE, ["meets"], (1.0, True)),
    ("failed beside it", "arguments", FREE, ["fails"], (0.0, False)),
    ("a fault beside it", "arguments", FREE, ["down"], DOWN),
    ("both met", "arguments", BOTH, ["meets", "meets"], (1.0, True)),
    ("one of two", "arguments", BOTH, ["meets", "fails"], (0.5, False)),
    ("one met, one fault", "arguments", BOTH, ["meets", "down"], DOWN),
    ("one failed, one fault", "arguments", BOTH, ["down", "fails"], (0.0, False)),
    ("an answer met", "answer", ANSWER, ["meets"], (1.0, True)),
    ("an answer that fails", "answer", ANSWER, ["fails"], (0.0, False)),
    ("a fault at an answer", "answer", ANSWER, ["down"], DOWN),
    ("a ban that is broken", "disallowed", BAN, ["meets"], (0.0, False)),
    ("a ban that is kept", "disallowed", BAN, ["fails"], (1.0, True)),
    ("a ban that is kept as far as one can tell", "disallowed", BAN, ["partly"], (1.0, True)),
    ("a fault at a ban", "disallowed", BAN, ["down"], DOWN),
]  # fmt: skip
EVENTS = [call(GIVEN), {"assistant": "Dear all"}]


@pytest.mark.parametrize(
    ("kind", "expected", "labels", "want"), [case[1:] for case in COMES], ids=[case[0] for case in COMES]
)
def test_what_comes_of_replies(kind: str, expected: dict[str, Any], labels: list[str], want: Any) -> None:
    found = told(made(kind, EVENTS, expected), *labels)
    if not isinstance(found, Scored):
        assert isinstance(found, Errored)
        assert replace(found, bounds=None) == want
        return
    assert (found.value, found.passed) == (pytest.approx(want[0]), want[1])
    assert bool(found.findings) is not found.passed


def test_code_and_judges_are_both_told() -> None:
    found = told(made("arguments", EVENTS, WRONG), "fails")
    assert isinstance(found, MixedScore)
    assert [note.label for note in found.judges] == ["fails"]
    assert found.findings == (Finding("wrong_argument", "b: expected 2, got 1", B), Finding("fails", "it fails", A))


def test_a_broken_ban_says_what_was_banned() -> None:
    found = told(made("disallowed", EVENTS, BAN), "meets")
    assert [(one.code, one.path) for one in found.findings] == [("disallowed_call", "/steps/0/call")]  # type: ignore[union-attr]


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


BOUNDS = [
    ("open beside what is right", BESIDE, ["down"], (0.25, 1.0)),
    ("open beside what is wrong", WRONG, ["down"], (0.0, 0.5)),
    ("one of two met", BOTH, ["meets", "down"], (0.5, 1.0)),
    ("one of two failed", BOTH, ["down", "fails"], (0.0, 0.5)),
]


@pytest.mark.parametrize(
    ("expected", "labels", "want"), [case[1:] for case in BOUNDS], ids=[case[0] for case in BOUNDS]
)
def test_what_open_parts_leave(expected: dict[str, Any], labels: list[str], want: tuple[float, float]) -> None:
    found = told(made("arguments", EVENTS, expected), *labels)
    assert isinstance(found, Errored | MixedScore)
    assert found.bounds is not None
    assert (found.bounds.low, found.bounds.high) == pytest.approx(want)


def test_alignment_takes_any_value_for_words() -> None:
    """Code decides which call is meant by what it can compare; words only want a value to be there."""
    events = [call({"a": "x", "b": 2}), call({"a": "y", "b": 1}), call({"b": 1})]
    asked = made("arguments", events, calls({"a": words(), "b": 1}))
    assert [(pair.expected, pair.step) for pair in asked.alignment.pairs] == [(0, 1)]
    assert [(ask.step, ask.value) for ask in asked.asks] == [(1, "y")]


def test_two_bans_of_one_argument_are_two_questions() -> None:
    bans = [{"tool": "f", "args": {"a": words(text)}, "reason": text} for text in ("rude", "secret")]
    asked = made("disallowed", [call(GIVEN)], {"disallowed": bans})
    assert [ask.words for ask in asked.asks] == ["rude", "secret"]
    report = conclude(asked, {asked.asks[0].key: vote("fails"), asked.asks[1].key: vote("meets")})
    found = report.steps[0].outcomes["disallowed"]
    assert isinstance(found, Scored)
    assert (found.value, [one.message for one in found.findings if one.code == "disallowed_call"]) == (
        0.0,
        ["f is disallowed: secret"],
    )
