"""BFCL's multi-turn check: did each turn's results come, and is the final state as expected?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.chain import find_fullest
from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.critics import Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.result_match import match_result
from service.core.gates.compat import build_method_score, fold_all_or_nothing, read_plain
from service.core.gates.state import StateGate
from service.core.outcome import PERFECT, Finding, Outcome, Scored, Skipped, build_failure

UNTYPED = (
    "there true is 1, calls in a turn in which none is due cost nothing, "
    "and what the state has beyond the wanted attributes is not seen"
)

ExpectedTurn = tuple[int, str, Sequence[CallPattern]]
"""A turn, the pointer of its scope, and the calls expected in it."""


class BfclMultiTurnGate(Check):
    """Check every turn of `turns`: 1.0 if each turn with expected calls made some and has their `result`s by its end, else 0.0.

    Results may come in any order and among others; those of earlier turns count too, each for one. If a final state is
    expected, it must be that state. Unlike on the leaderboard, a call in a turn with `calls: none` fails too. With `compat` in
    the rubric, the score is the leaderboard's own verdict. Findings: `empty_turn`, `missing_result`, `over_call`, and those of
    the state. Source: ShishirPatil/gorilla, `multi_turn_checker.py`.
    """

    kind: Literal["bfcl_multi_turn"] = "bfcl_multi_turn"
    has_own_number: ClassVar[bool] = True
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"result", "none", "some", "state"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        turns = _list_turns(case)
        if not turns and not any(scope.no_calls for _, scope, turn in case.scopes if turn is not None):
            return [(WHOLE, Skipped("not_applicable", "nothing is expected of single turns"))]
        needs_results = any(pattern.says_result for _, _, patterns in turns for pattern in patterns)
        if needs_results and any(step.result is None for step in case.trace.steps):
            return [(WHOLE, Skipped("not_captured", "the trace does not say what a call returned"))]
        case.meter.spend("comparisons", 8 * sum([len(one[2]) for one in turns]) * (1 + len(case.trace.steps)))
        state = [*StateGate(mode="exact").look(case)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case, turns, state[0][1]))]
        outcomes: list[SubjectOutcome] = [(WHOLE, _score_turn(case, one)) for one in turns]
        return fold_all_or_nothing([*outcomes, *_score_idle(case), *state])

    def _score_upstream(self, case: Case, turns: Sequence[ExpectedTurn], state: object) -> Outcome:
        if isinstance(state, Outcome) and not isinstance(state, Scored) and state.cause != "not_applicable":
            return state
        valid = not isinstance(state, Scored) or _has_same_state(case, passed=state.passed)
        for turn, path, patterns in turns:
            results = [
                step.result.content for step in case.trace.steps if step.turn <= turn and step.result is not None
            ]
            expected = [read_plain(f"{path}/calls", p.result, "BFCL") for p in patterns if p.says_result]
            valid = valid and bool(case.find_steps(turn)) and contains_all(results, expected)
        return build_method_score(self, case, float(valid), system="BFCL", why=UNTYPED)


def _has_same_state(case: Case, *, passed: bool) -> bool:
    """Compare whole states as BFCL does; where parts are ignored, or changes are expected, our own comparison counts."""
    expected = case.expectation.state if case.expectation else None
    if expected is None or case.trace.state is None or expected.changes is not None or expected.ignore or expected.keys:
        return passed
    return is_same_world(case.trace.state.final, expected.final)


def is_same_world(actual: JsonValue, expected: JsonValue) -> bool:
    """Whether BFCL finds every expected object as it should be: `{class: {attribute: value}}`, or the attributes of one.

    Attributes that begin with `_`, and those of the actual object alone, do not count. Values are compared as Python does.

    >>> is_same_world({"A": {"x": True, "y": 2}}, {"A": {"x": 1, "_z": 3}}), is_same_world({"x": 2}, {"x": 1})
    (True, False)
    """
    if not isinstance(actual, dict) or not isinstance(expected, dict):
        return actual == expected
    if expected and all(isinstance(one, dict) for one in expected.values()):
        return all(_has_attributes(actual.get(name), one) for name, one in expected.items())
    return _has_attributes(actual, expected)


def _has_attributes(actual: JsonValue, expected: JsonValue) -> bool:
    if not isinstance(actual, dict) or not isinstance(expected, dict):
        return False
    public = [name for name in expected if not name.startswith("_")]
    return all(name in actual and actual[name] == expected[name] for name in public)


def contains_all(actual: Sequence[JsonValue], expected: Sequence[JsonValue]) -> bool:
    """Whether every expected result is among the actual ones, each counted once, as Python compares them.

    >>> contains_all(["b", 1, "a"], ["a", True]), contains_all(["a"], ["a", "a"])
    (True, False)
    """
    rest = list(actual)
    for one in expected:
        if one not in rest:
            return False
        rest.remove(one)
    return True


def _list_turns(case: Case) -> list[ExpectedTurn]:
    """List the turns in which calls are expected."""
    found: list[ExpectedTurn] = []
    for path, scope, turn in case.scopes:
        patterns = [one.options[0][1] for one in scope.list_expected_calls(path, turn) if one.required]
        if turn is not None and (patterns or scope.calls == "some"):
            found.append((turn, path, patterns))
    return sorted(found, key=lambda one: one[0])


def _score_turn(case: Case, expected: ExpectedTurn) -> Outcome:
    turn, path, patterns = expected
    absent = case.explain_missing_turn(turn)
    if absent is not None:
        return absent
    if not case.find_steps(turn):
        return build_failure(0.0, Finding("empty_turn", f"calls were due in turn {turn}, and none was made", path))
    results = [step.result.content for step in case.trace.steps if step.turn <= turn and step.result is not None]
    with_result = [pattern for pattern in patterns if pattern.says_result]
    matches = [[match_result(pattern.result, content) for content in results] for pattern in with_result]
    pairs = find_fullest(
        range(len(with_result)), range(len(results)), lambda n, m: _passes(matches[n][m]), meter=case.meter
    )
    for n, pattern in enumerate(with_result):
        open_ones = [one for one in matches[n] if isinstance(one, OpenComparison)]
        if n not in pairs and open_ones:
            return Skipped(open_ones[0].cause, open_ones[0].reason)
        if n not in pairs:
            return build_failure(0.0, Finding("missing_result", f"{pattern.tool}: its result has not come", path))
    return PERFECT


def _passes(match: Match | OpenComparison) -> bool:
    return isinstance(match, Match) and match.passed


def _score_idle(case: Case) -> Iterable[SubjectOutcome]:
    for _, scope, turn in case.scopes:
        steps = case.find_steps(turn) if scope.no_calls and turn is not None else ()
        for step in steps:
            message = f"{step.call.name} was called in turn {turn}, where no call was due"
            finding = Finding("over_call", message, f"/steps/{step.index}/call")
            yield case.subjects[step.index], build_failure(0.0, finding)
