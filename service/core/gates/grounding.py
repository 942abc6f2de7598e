"""Step 4 of the contract without a reference: do the answers retell what the tools returned?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case
from service.core.checks import WHOLE, Aggregate, Check, Part, Subject, SubjectOutcome
from service.core.grounding.history import History
from service.core.grounding.origins import GroundedScore, GroundedSkip
from service.core.grounding.texts import GroundedText, ground_texts
from service.core.outcome import Finding, Outcome, Skipped
from service.core.unread_parts import build_missing_result, build_unread_result

NO_TEXT_FOLLOWS = Skipped("not_applicable", "no text follows a result")


class GroundingGate(Check):
    """Check each text that follows a result: 1.0 unless code proves one of its statements wrong, then 0.0.

    Every number, amount, measure, day, time, code and name in the text is looked up in the results before it, in what user and
    system said and in what calls passed; `grounding` lists each with its origin: `found` (a result holds it, as it is, rounded
    or in another unit), `derived` (one step of arithmetic), `given`, `general` (common knowledge) or `nowhere`. The nearest
    values are listed with it, unless it is given or found as it is. A value that stands nowhere proves nothing.

    Proved are three forms alone: `scale_slip` (an amount stated with its decimal point at the wrong place of a field that counts
    cents), `other_value_than_done` (the assistant says that it did something with another amount than its one call had), and
    `claimed_action_not_taken` (it says that it did what a tool on offer does, and every such call failed or none was made).
    Suspected, which leaves the text open, are `suspected_slip` (a number or code that stands nowhere, one digit or character
    away from one that does), `suspected_other_value`, `suspected_action_not_taken` and `claimed_success_after_error`.

    A text that follows a result that could not be read, or is missing, is open.
    """

    kind: Literal["grounding"] = "grounding"

    default_aggregate: ClassVar[Aggregate] = "min"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result", "text"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for each text that follows a call."""
        texts = case.once(ground_texts, lambda: ground_texts(case.once(History, lambda: History(case.trace))))
        if not texts:
            yield WHOLE, NO_TEXT_FOLLOWS
        for text in texts:
            yield Subject(turn=text.turn), _score_text(text)


def _score_text(text: GroundedText) -> Outcome:
    if text.too_long:
        return Skipped("too_long", text.too_long)
    findings = tuple([Finding(one.code, one.message, f"/messages/{text.message}/text") for one in text.findings])
    if any(one.proved for one in text.findings):
        return GroundedScore(0.0, False, findings, text.values)
    if findings:
        reason = "the text may say what is not so, and nothing proves it"
        return GroundedSkip("not_asked", reason, findings, grounding=text.values)
    if text.unread:
        return build_unread_result(text.unread)
    if text.missing:
        return build_missing_result(text.missing)
    if not text.values:
        return Skipped("not_applicable", "the text states no value that could be looked up")
    return GroundedScore(1.0, True, (), text.values)
