"""Step 4 of the contract, where the expectation names the answer: does the final text say it?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.checks import WHOLE, Case, Check, Seen
from service.core.critics import Critic, Uncompared
from service.core.outcome import Finding, Outcome, Scored, Skipped
from service.core.shapes import Shape


class AnswerGate(Check):
    """The final text against `expected.answer`, a text or a matcher; the matcher's score. Finding: `wrong_answer`."""

    kind: Literal["answer"] = "answer"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        yield WHOLE, self._compared(case)

    def _compared(self, case: Case) -> Outcome:
        wanted = case.expectation.answer if case.expectation else None
        if wanted is None:
            return Skipped("not_applicable", "no answer was expected")
        if case.trace.answer is None:
            return Skipped("not_captured", "the trace does not end in an answer")
        matcher = wanted if isinstance(wanted, Critic) else Shape(value=wanted)
        match = matcher.match(case.trace.answer)
        if isinstance(match, Uncompared):
            return Skipped("too_long", match.reason)
        findings = () if match.passed else (Finding("wrong_answer", match.note, "/answer"),)
        return Scored(match.value, match.passed, findings)
