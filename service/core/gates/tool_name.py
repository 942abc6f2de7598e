"""Step 2 of the contract: is it the right tool? And which names are easily mistaken for one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, TypeVar

from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

from service.core.case import Case, Pair, build_call_path, fold_name
from service.core.checks import WHOLE, Aspect, Check, Subject, SubjectOutcome
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.outcome import PERFECT, Finding, Outcome, PartialOutcome, Scored, Skipped, build_failure
from service.core.work_limits import MAX_NAME_CHARS, Meter

NO_CALLS = Skipped("not_applicable", "no call was due and none was made")


class ToolNameGate(Check):
    """Match tool names over the optimal alignment: each expected call and each extra call counts once, 1.0 or 0.0.

    Names are compared exactly or, where the rubric folds names, ignoring case and with `-`, `_` and `.` as one. A failed try of
    an expected call that a later call repeats does not count. Findings: `wrong_tool` (called a near miss where the names are
    close), `missing_call`, `extra_call`, `extra_read`, `failed_try`.
    """

    kind: Literal["tool_name"] = "tool_name"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"extra", "tools"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each pair, each missing call, and each extra call that counts against the score."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        subjects = case.subjects
        paired = [(subjects[pair.step], score_name(case, pair)) for pair in case.alignment.pairs]
        return [*paired, *score_unmatched(case)] or [(WHOLE, NO_CALLS)]


def score_name(case: Case, pair: Pair) -> Scored:
    """Score whether the call of this pair is a call of the expected tool."""
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


PairOutcome = TypeVar("PairOutcome", bound=Outcome | PartialOutcome)


def settle_pair(case: Case, pair: Pair, outcome: PairOutcome) -> PairOutcome | Skipped:
    """Return the outcome of a pair, or leave it open if it did not pass and another call may fit better."""
    if outcome is PERFECT or not case.alignment.unsettled:
        return outcome
    reason = case.alignment.unsettled.get(pair.expected)
    if reason is None or not isinstance(outcome, Scored | PartialOutcome) or outcome.passed:
        return outcome
    return Skipped("too_long", reason) if score_name(case, pair).passed else outcome


def score_pairs(
    case: Case, score: Callable[[Pair], PairOutcome], pairs: Iterable[Pair] | None = None
) -> list[tuple[Subject, PairOutcome | Skipped]]:
    """Score these pairs of the alignment, or all; one that may be paired better stays open."""
    chosen = case.alignment.pairs if pairs is None else pairs
    return [(case.subjects[pair.step], settle_pair(case, pair, score(pair))) for pair in chosen]


def score_unmatched(case: Case) -> Sequence[SubjectOutcome]:
    """Score the missing and the extra calls, for every check that scores the alignment."""
    alignment = case.alignment
    if not alignment.missing and not alignment.extra and not alignment.tries:
        return ()
    return case.once("unmatched", lambda: [*score_all_missing(case), *_score_extra(case)])


def score_all_missing(case: Case) -> Sequence[SubjectOutcome]:
    """Score the expected calls that were not made."""
    missing = case.alignment.missing
    return case.once("missing", lambda: [score_missing(case, i) for i in missing]) if missing else ()


def _score_extra(case: Case) -> Iterable[SubjectOutcome]:
    """Score the calls beyond the expected ones; of several tries of one call, only the last counts."""
    unsettled = {
        case.make_name_key(pattern.tool): reason
        for i, reason in case.alignment.unsettled.items()
        for _, pattern in case.expected_calls[i].options
    }
    for j in case.alignment.extra:
        step = case.trace.steps[j]
        outcome = case.score_unexpected(step)
        reason = unsettled.get(case.make_name_key(step.call.name))
        if isinstance(outcome, Scored) and reason is not None:
            outcome = Skipped("too_long", reason)
        if isinstance(outcome, Scored) and j in case.alignment.possible_tries:
            retry = case.alignment.possible_tries[j] + 1
            unknown = "the trace does not say what one of the two calls returned"
            reason = f"it may be a failed try of step {retry}: {unknown}"
            outcome = Skipped("not_captured", reason, outcome.findings, open=True)
        if outcome is not None:
            yield case.subjects[step.index], outcome
    for j, retry in case.alignment.tries.items():
        step = case.trace.steps[j]
        message = f"{step.call.name} failed, and step {retry + 1} repeats it: both are one call"
        finding = Finding("failed_try", message, build_call_path(step))
        yield case.subjects[j], Skipped("not_applicable", "a failed try of a call that is repeated", (finding,))


def score_missing(case: Case, expected: int) -> SubjectOutcome:
    """Score an expected call that was not made."""
    expected_call = case.expected_calls[expected]
    if expected in case.alignment.unsettled:
        unsettled = Skipped("too_long", case.alignment.unsettled[expected])
        return Subject(expected=expected, turn=expected_call.turn), unsettled
    finding = Finding("missing_call", f"{expected_call.tools} was expected and not called", expected_call.path)
    return Subject(expected=expected, turn=expected_call.turn), build_failure(0.0, finding)


LEAST_SIMILARITY = 0.8
MAX_NAMES_BY_WORD = 200
"""The largest catalogue that is also searched for words in common; larger ones are searched by similarity alone."""


def find_near(name: str, others: Iterable[str], *, meter: Meter | None = None) -> list[str]:
    """Return at most three names close to `name`, closest first: Jaro-Winkler similarity of at least 0.8, or a word in common.

    Of a long name, only the beginning is compared and returned. Where `meter` has no room for another search, the result is [].

    >>> find_near("refund_order", ["void_charge", "refund_orders", "cancel_order"])
    ['refund_orders', 'cancel_order']
    """
    candidates, meter = list(others), meter or Meter()
    if not meter.can_afford("names", len(candidates)):
        return []
    meter.spend("names", len(candidates))
    name, known = _cut(name), [_cut(other) for other in candidates if other != name]
    scorer = JaroWinkler.similarity
    found = process.extract(name, known, scorer=scorer, processor=fold_name, score_cutoff=LEAST_SIMILARITY, limit=3)
    close = [other for other, _, _ in sorted(found, key=lambda one: (-one[1], one[0]))]
    words = _list_words(name)
    related = [other for other in known if words & _list_words(other)] if len(known) <= MAX_NAMES_BY_WORD else []
    return list(dict.fromkeys([*close, *sorted(related)]))[:3]


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else name[: MAX_NAME_CHARS - 1] + "…"


def _list_words(name: str) -> set[str]:
    return {word for word in fold_name(name).split("_") if len(word) > 3}
