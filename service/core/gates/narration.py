"""Step 4 of the contract without a reference: do the answers retell what the tools returned?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case
from service.core.checks import WHOLE, Aggregate, Check, Part, Subject, SubjectOutcome
from service.core.evidence.actions.told import CLAIMED_ACTION
from service.core.evidence.evidenced import EvidencedScore, Suspicion
from service.core.evidence.narration.answers import Narration, narrate
from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.outcome import Finding, Outcome, Skipped
from service.core.unread_parts import build_missing_result, build_unread_result

NO_TEXT_FOLLOWS = Skipped("not_applicable", "no text follows a result")


class NarrationGate(Check):
    """Check each text that follows a result: 1.0 unless one of its claims contradicts a field it names, then 0.0.

    Every number, amount, measure, date and time in the text is bound to a field, by its words, and to a record, by the names
    and days around it, among all results so far; `evidence` holds the verdict on each. These findings fail the text:
    `scale_flip` (the decimal point is elsewhere), `digit_flip`, `sign_flip`, `swapped_entity` (the value of another record),
    `out_of_range` (outside all values that may be meant), `threshold` (`above $200`, and it is not), `wrong_value`,
    `wrong_date`, `wrong_time`, `wrong_boolean`, `wrong_unit` (12 km reported as 12 miles), `wrong_weekday` (of a date),
    `wrong_extreme` (not the least of the values returned), `negation`. `unsupported_claim` does not, unless `unsupported` is
    `fail`. A claim that names no field is left alone; a text without anything to check is not applicable.

    A text that rests on a result that is not JSON is unread, and one that follows a call without a result is open. A claim
    that only the inferred structure of a result contradicts (key: value lines, tables, XML) is open too, as
    `suspected_contradiction`; so is completion claimed after what is likely an error. A claim whose words prove no
    contradiction, and that no fact, no earlier text and no arithmetic accounts for, is a `suspected_contradiction` that
    lowers nothing: a judge or a human decides. A suspicion needs grounds: it names the value that was mistaken, or its words
    leave no other field and its sentence names the entity.

    `claimed_action_not_taken`: the assistant says that it did what a tool on offer does, and no call that could change
    anything succeeded; it is only suspected where another such call succeeded.
    """

    kind: Literal["narration"] = "narration"
    unsupported: Literal["note", "fail"] = "note"
    """The effect of a claim that no result supports and none contradicts."""

    default_aggregate: ClassVar[Aggregate] = "min"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result", "text"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for each text that follows a call."""
        narrations = case.once(narrate, lambda: narrate(case.trace))
        if not narrations:
            yield WHOLE, NO_TEXT_FOLLOWS
        for narration in narrations:
            yield Subject(turn=narration.turn), self._score_text(narration)

    def _score_text(self, narration: Narration) -> Outcome:
        if narration.too_long:
            return Skipped("too_long", narration.too_long)
        findings = tuple([_build_finding(claim) for claim in narration.claims if claim.verdict in _REPORTED_VERDICTS])
        failing = ("contradicted", "unsupported") if self.unsupported == "fail" else ("contradicted",)
        if any(claim.verdict in failing for claim in narration.claims):
            return EvidencedScore(0.0, False, findings, narration.claims)
        if any(claim.verdict == "suspected" for claim in narration.claims):
            return _build_suspicion(narration, findings)
        if narration.unread:
            return build_unread_result(narration.unread, findings)
        if narration.missing:
            return build_missing_result(narration.missing)
        if all(claim.verdict == "not_checkable" for claim in narration.claims):
            return Skipped("not_applicable", "nothing in the text can be checked against a field")
        return EvidencedScore(1.0, True, findings, narration.claims)


_ACTION_CODES = frozenset({"claimed_success_after_error", CLAIMED_ACTION})
_REPORTED_VERDICTS = frozenset({"contradicted", "suspected", "unsupported"})
"""The verdicts that become findings."""


def _build_suspicion(narration: Narration, findings: tuple[Finding, ...]) -> Suspicion:
    """Leave the text open: as unread where structure was inferred, else as a question for a judge."""
    suspected = [claim for claim in narration.claims if claim.verdict == "suspected"]
    if all(claim.code in _ACTION_CODES for claim in suspected):
        reason = "the text claims what no call before it seems to have done"
        return Suspicion("not_asked", reason, findings, evidence=narration.claims)
    if not narration.inferred:
        reason = "the text may contradict a result, and its words do not prove it"
        return Suspicion("not_asked", reason, findings, evidence=narration.claims)
    reason = "the text seems to contradict a result whose structure is only inferred"
    where = Finding("unread_result", reason, narration.inferred)
    return Suspicion("unread", reason, (*findings, where), evidence=narration.claims)


def _build_finding(claim: ClaimVerdict) -> Finding:
    if claim.verdict == "suspected":
        return Finding("suspected_contradiction", claim.note or "", claim.path)
    if claim.verdict == "contradicted":
        return Finding(claim.code or "wrong_value", claim.note or "", claim.path)
    return Finding("unsupported_claim", f"no result bears out {claim.text}", claim.path)
