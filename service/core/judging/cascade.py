"""Evidence first, then the judge: nobody is asked about what code proves, and the judge sees what code found."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from service.core.case import Case
from service.core.checks import Aggregate, Part, Subject
from service.core.gates.grounding import GroundingGate
from service.core.gates.provenance import ProvenanceGate
from service.core.grounding.origins import GroundedScore, GroundedSkip
from service.core.judging.judges import Ask, Judge, JudgeCheck, is_answered
from service.core.models.light import lazy
from service.core.outcome import Outcome, Skipped

Evidence = Annotated[GroundingGate | ProvenanceGate, Field(discriminator="kind")]

EVIDENCE_VERSION = 13
"""Version of the evidence: increment it whenever code finds something else, or shows its findings to a judge differently."""

_UNASKED = Skipped("not_applicable", "no question is asked about it")


class CascadeCheck(JudgeCheck):
    """A judged criterion that code looks at first.

    Where the evidence contradicts, that is the outcome and no judge is asked: a judge could only be talked out of it. The
    judge is asked everything else, with the evidence in view. Without a judge, code still finds contradictions and nothing
    else is scored.
    """

    kind: Literal["cascade"] = "cascade"  # pyright: ignore[reportIncompatibleVariableOverride] (its own place in the union)
    evidence: Evidence
    """The check that looks first: `grounding` or `provenance`."""
    veto: Annotated[float, Field(ge=0, le=1)] | None = 0.0
    """The highest score a judge may give to what the evidence contradicts. 0: the judge is not asked. null: no limit."""

    default_aggregate: ClassVar[Aggregate] = "min"

    @lazy
    def evidence_digest(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] (lazy of its own class)
        """sha256 of the evidence check, of the veto, and of the version of the evidence."""
        kept = [EVIDENCE_VERSION, self.evidence.model_dump(mode="json"), self.veto]
        return sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def find_parts(self, judges: Mapping[str, Judge]) -> frozenset[Part]:
        """Return the parts that the judge looks at and those that code looks at first."""
        return super().find_parts(judges) | self.evidence.looks_at

    def build_asks(
        self, case: Case, *, criterion: str, judges: Mapping[str, Judge], answered: Collection[Subject] = ()
    ) -> Iterable[tuple[Subject, Ask | Outcome]]:
        """Return the outcomes that the evidence decides, and a question for each step, turn or trace that it leaves open."""
        asked = super().build_asks(case, criterion=criterion, judges=judges)
        if answered and not [subject for subject, _ in asked if not is_answered(subject, answered)]:
            return asked  # gathering evidence is expensive
        found = _group_by_subject(self.evidence, case)
        settled = [(subject, self._settle(open_one, *found.pop(subject, (None, None)))) for subject, open_one in asked]
        if not found:
            return settled
        beside = [(at, self._settle(_UNASKED, *view)) for at, view in found.items()]
        return [*settled, *[(at, one) for at, one in beside if one is not _UNASKED]]

    def _settle(self, open_one: Ask | Outcome, evidence: GroundedScore | None, gap: Skipped | None) -> Ask | Outcome:
        if evidence is not None and not evidence.passed and self.veto == 0.0:
            return evidence  # it decides alone, whatever a judge might say
        if not isinstance(open_one, Ask):
            idle = isinstance(open_one, Skipped) and not open_one.open
            return gap if idle and isinstance(gap, GroundedSkip) else open_one
        ask = open_one if gap is None else open_one._replace(gap=gap)
        shown = [one for one in (evidence, gap) if isinstance(one, GroundedScore | GroundedSkip)]
        if not shown:
            return ask
        doubts = [one for one in shown if not isinstance(one, GroundedScore) or not one.passed]
        against = [finding for one in doubts for finding in one.findings]
        veto = self.veto if evidence is not None and not evidence.passed else None
        values = tuple([value for one in shown for value in one.grounding])
        return ask._replace(grounding=values, findings=tuple(against), veto=veto)


EvidenceView = tuple[GroundedScore | None, Skipped | None]
"""The evidence on a subject, and why some of the subject has none."""


def _group_by_subject(check: GroundingGate | ProvenanceGate, case: Case) -> dict[Subject, EvidenceView]:
    """Gather the evidence on each subject; for several texts in a turn, joined."""
    found: dict[Subject, EvidenceView] = {}
    for subject, outcome in check.look(case):
        evidence, gap = found.get(subject, (None, None))
        if isinstance(outcome, GroundedScore):
            found[subject] = outcome if evidence is None else _join_evidence(evidence, outcome), gap
        elif isinstance(outcome, Skipped) and outcome.open:
            found[subject] = evidence, _join_gaps(gap, outcome)
    return found


def _join_evidence(one: GroundedScore, other: GroundedScore) -> GroundedScore:
    findings, grounding = (*one.findings, *other.findings), (*one.grounding, *other.grounding)
    return GroundedScore(min(one.value, other.value), one.passed and other.passed, findings, grounding)


def _join_gaps(gap: Skipped | None, other: Skipped) -> Skipped:
    """Join the gaps of several open texts: all suspicions; without any, the first gap."""
    if isinstance(gap, GroundedSkip) and isinstance(other, GroundedSkip):
        return replace(gap, findings=(*gap.findings, *other.findings), grounding=(*gap.grounding, *other.grounding))
    return other if gap is None or isinstance(other, GroundedSkip) else gap
