"""Step 2 of the contract: is it the right tool?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, TypeVar

from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, Subject, SubjectOutcome
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.names import find_near
from service.core.outcome import PERFECT, Finding, Outcome, PartialOutcome, Scored, Skipped, build_failure

NO_CALLS = Skipped("not_applicable", "no call was due and none was made")


class ToolNameGate(Check):
    """Function-name match over the optimal alignment: each expected call and each call too many counts once, 1.0 or 0.0.

    Names are compared exactly, or with case folded and `-`, `_`, `.` as one where the rubric folds names. Findings:
    `wrong_tool` (said to be a near miss where the names are close), `missing_call`, `extra_call`, `extra_read`.
    """

    kind: Literal["tool_name"] = "tool_name"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"extra", "tools"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each pair, each missing call, and each extra one that is not free."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        subjects = case.subjects
        named = [(subjects[pair.step], score_name(case, pair)) for pair in case.alignment.pairs]
        return [*named, *score_unmatched(case)] or [(WHOLE, NO_CALLS)]


def score_name(case: Case, pair: Pair) -> Scored:
    """Whether the call of this pair is of the expected tool."""
    if pair.pattern.tool == case.trace.steps[pair.step].call.name:
        return PERFECT
    return case.once(("named", pair.expected, pair.step), lambda: _compare_names(case, pair))


def _compare_names(case: Case, pair: Pair) -> Scored:
    step = case.trace.steps[pair.step]
    if case.is_same_name(pair.pattern.tool, step.call.name):
        return PERFECT
    expected = case.expected_calls[pair.expected].tools
    close = ", a near miss" if find_near(pair.pattern.tool, [step.call.name], meter=case.meter) else ""
    message = f"expected {expected}, called {step.call.name}{close}"
    return build_failure(0.0, Finding("wrong_tool", message, f"{build_call_path(step)}/name"))


Verdict = TypeVar("Verdict", bound=Outcome | PartialOutcome)


def settle_pair(case: Case, pair: Pair, found: Verdict) -> Verdict | Skipped:
    """What a pair's arguments or result came to; open where it did not pass and another call may fit better."""
    if found is PERFECT or not case.alignment.unsettled:
        return found
    why = case.alignment.unsettled.get(pair.expected)
    if (
        why is None
        or not isinstance(found, Scored | PartialOutcome)
        or found.passed
        or not score_name(case, pair).passed
    ):
        return found
    return Skipped("too_long", why)


def score_unmatched(case: Case) -> Sequence[SubjectOutcome]:
    """Missing and extra calls, for every check that scores the alignment."""
    if not case.alignment.missing and not case.alignment.extra:
        return ()
    return case.once("unmatched", lambda: [*score_all_missing(case), *_score_extra(case)])


def score_all_missing(case: Case) -> Sequence[SubjectOutcome]:
    """The outcomes of the expected calls that were not made."""
    missing = case.alignment.missing
    return case.once("missing", lambda: [score_missing(case, i) for i in missing]) if missing else ()


def _score_extra(case: Case) -> Iterable[SubjectOutcome]:
    for j in case.alignment.extra:
        step = case.trace.steps[j]
        outcome = case.score_unexpected(step)
        if outcome is not None:
            yield case.subjects[step.index], outcome


def score_missing(case: Case, expected: int) -> SubjectOutcome:
    """The outcome of an expected call that was not made."""
    wanted = case.expected_calls[expected]
    finding = Finding("missing_call", f"{wanted.tools} was expected and not called", wanted.path)
    return Subject(expected=expected, turn=wanted.turn), build_failure(0.0, finding)
