"""Compare what the calls returned with what they should have returned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case, Pair
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.critics import OpenComparison, WordsComparison
from service.core.expectations.result_match import InferredMatch, match_result
from service.core.gates.tool_name import score_missing, score_name, score_pairs
from service.core.outcome import Errored, Finding, OpenValue, Outcome, PartialOutcome, Scored, Skipped, build_failure

NO_RESULT_EXPECTED = Skipped("not_applicable", "no result was expected")


class ResultsGate(Check):
    """Compare the result of each aligned call with the `result` of its pattern; the value is the matcher's score.

    A call that was not made, or that went to another tool, scores 0. Finding: `wrong_result`, or `failed_call` where the tool
    reported an error that was not expected. A text is also compared as the JSON that it holds. If an object or array is
    expected and the structure of the result is only inferred, the outcome is open, with the finding `suspected_result`.
    """

    kind: Literal["results"] = "results"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"result"})
    idle_outcome: ClassVar[Skipped | None] = NO_RESULT_EXPECTED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each expected result."""
        pairs = [pair for pair in case.alignment.pairs if pair.pattern.says_result]
        scored = score_pairs(case, lambda pair: _score_pair(case, pair), pairs)
        missing = [i for i in case.alignment.missing if any(p.says_result for _, p in case.expected_calls[i].options)]
        return [*scored, *[score_missing(case, i) for i in missing]] or [(WHOLE, NO_RESULT_EXPECTED)]


def _score_pair(case: Case, pair: Pair) -> Outcome | PartialOutcome:
    right_tool = score_name(case, pair)
    if not right_tool.passed:
        return right_tool
    step = case.trace.steps[pair.step]
    if step.result is None and case.trace.state is not None and case.trace.state.fault is not None:
        return Errored("sandbox", case.trace.state.fault)
    if step.result is None:
        return Skipped("not_captured", "the trace does not say what the call returned")
    path = f"/steps/{step.index}/result"
    match = match_result(pair.pattern.result, step.result.content)
    if isinstance(match, InferredMatch):
        fits = "fits" if match.passed else "does not fit"
        reason = f"the result is no JSON; read as {' and '.join(match.forms)} it {fits} what is expected"
        codes = ("suspected_result", "unread_result")
        return Skipped("unread", reason, tuple([Finding(code, reason, f"{path}/content") for code in codes]))
    if isinstance(match, WordsComparison):
        return PartialOutcome((OpenValue(match.words, match.value, f"{path}/content"),))
    if isinstance(match, OpenComparison):
        return Skipped(match.cause, match.reason)
    if match.passed:
        return Scored(match.value, True)
    if step.result.is_error:
        return build_failure(match.value, Finding("failed_call", f"the call failed: {match.note}", path))
    return build_failure(match.value, Finding("wrong_result", match.note, f"{path}/content"))
