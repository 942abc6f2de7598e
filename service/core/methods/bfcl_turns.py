"""BFCL's check of several turns: each turn's results came, and the state is as it should be."""

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
"""A turn, the pointer of its scope, and the calls that are expected in it."""


class BfclMultiTurnGate(Check):
    """1.0 if in every turn of `turns` calls were made where some were due and their `result`s have come by its end, else 0.0.

    Results may come in any order and with others beside them, those of earlier turns count, each for one. The final state must
    be the expected one, if one is. Here a call in a turn with `calls: none` fails too. With `compat` in the rubric the
    leaderboard's own verdict. Findings: `empty_turn`, `missing_result`, `over_call`, and those of the state. Source:
    ShishirPatil/gorilla, `multi_turn_checker.py`.
    """

    kind: Literal["bfcl_multi_turn"] = "bfcl_multi_turn"
    has_own_number: ClassVar[bool] = True
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"result", "none", "some", "state"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for the trace."""
        turns = _list_turns(case)
        if not turns and not any(scope.no_calls for _, scope, turn in case.scopes if turn is not None):
            return [(WHOLE, Skipped("not_applicable", "nothing is expected of single turns"))]
        due = any(pattern.says_result for _, _, patterns in turns for pattern in patterns)
        if due and any(step.result is None for step in case.trace.steps):
            return [(WHOLE, Skipped("not_captured", "the trace does not say what a call returned"))]
        case.meter.spend("comparisons", 8 * sum([len(one[2]) for one in turns]) * (1 + len(case.trace.steps)))
        state = [*StateGate(mode="exact").look(case)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case, turns, state[0][1]))]
        found: list[SubjectOutcome] = [(WHOLE, _score_turn(case, one)) for one in turns]
        return fold_all_or_nothing([*found, *_score_idle(case), *state])

    def _score_upstream(self, case: Case, turns: Sequence[ExpectedTurn], state: object) -> Outcome:
        if isinstance(state, Outcome) and not isinstance(state, Scored) and state.cause != "not_applicable":
            return state
        kept = not isinstance(state, Scored) or _has_same_state(case, passed=state.passed)
        for turn, path, patterns in turns:
            made = [step.result.content for step in case.trace.steps if step.turn <= turn and step.result is not None]
            wanted = [read_plain(f"{path}/calls", p.result, "BFCL") for p in patterns if p.says_result]
            kept = kept and bool(case.find_steps(turn)) and contains_all(made, wanted)
        return build_method_score(self, case, float(kept), system="BFCL", why=UNTYPED)


def _has_same_state(case: Case, *, passed: bool) -> bool:
    """BFCL's own comparison of whole states; where parts do not matter, or changes are wanted, ours."""
    wanted = case.expectation.state if case.expectation else None
    if wanted is None or case.trace.state is None or wanted.changes is not None or wanted.ignore or wanted.keys:
        return passed
    return is_same_world(case.trace.state.final, wanted.final)


def is_same_world(made: JsonValue, wanted: JsonValue) -> bool:
    """Whether BFCL finds every wanted object as it should be: `{class: {attribute: value}}`, or the attributes of one.

    Attributes that begin with `_` do not count, and neither do those that are made alone. Values are as Python compares them.

    >>> is_same_world({"A": {"x": True, "y": 2}}, {"A": {"x": 1, "_z": 3}}), is_same_world({"x": 2}, {"x": 1})
    (True, False)
    """
    if not isinstance(made, dict) or not isinstance(wanted, dict):
        return made == wanted
    if wanted and all(isinstance(one, dict) for one in wanted.values()):
        return all(_has_attributes(made.get(name), one) for name, one in wanted.items())
    return _has_attributes(made, wanted)


def _has_attributes(made: JsonValue, wanted: JsonValue) -> bool:
    if not isinstance(made, dict) or not isinstance(wanted, dict):
        return False
    public = [name for name in wanted if not name.startswith("_")]
    return all(name in made and made[name] == wanted[name] for name in public)


def contains_all(made: Sequence[JsonValue], wanted: Sequence[JsonValue]) -> bool:
    """Whether every wanted result is among those that came, each for one, as Python compares them.

    >>> contains_all(["b", 1, "a"], ["a", True]), contains_all(["a"], ["a", "a"])
    (True, False)
    """
    left = list(made)
    for one in wanted:
        if one not in left:
            return False
        left.remove(one)
    return True


def _list_turns(case: Case) -> list[ExpectedTurn]:
    """The turns in which calls are due."""
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
    left = [step.result.content for step in case.trace.steps if step.turn <= turn and step.result is not None]
    wanted = [pattern for pattern in patterns if pattern.says_result]
    matches = [[match_result(pattern.result, content) for content in left] for pattern in wanted]
    taken = find_fullest(range(len(wanted)), range(len(left)), lambda n, m: _passes(matches[n][m]), meter=case.meter)
    for n, pattern in enumerate(wanted):
        unknown = [one for one in matches[n] if isinstance(one, OpenComparison)]
        if n not in taken and unknown:
            return Skipped(unknown[0].cause, unknown[0].reason)
        if n not in taken:
            return build_failure(0.0, Finding("missing_result", f"{pattern.tool}: its result has not come", path))
    return PERFECT


def _passes(match: Match | OpenComparison) -> bool:
    return isinstance(match, Match) and match.passed


def _score_idle(case: Case) -> Iterable[SubjectOutcome]:
    for _, scope, turn in case.scopes:
        steps = case.find_steps(turn) if scope.no_calls and turn is not None else ()
        for step in steps:
            said = f"{step.call.name} was called in turn {turn}, where no call was due"
            yield case.subjects[step.index], build_failure(0.0, Finding("over_call", said, f"/steps/{step.index}/call"))
