"""Evidence first, then the judge: what code proves is not asked, and what it finds is shown to the judge."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter

from service.core.case import Case
from service.core.checks import Aggregate, Part, Subject
from service.core.evidence.evidenced import EvidencedScore, Suspicion
from service.core.gates.narration import NarrationGate
from service.core.gates.provenance import ProvenanceGate
from service.core.judging.judges import Ask, Judge, JudgeCheck, is_answered
from service.core.models.lazy import lazy
from service.core.outcome import Outcome, Skipped

Evidence = Annotated[NarrationGate | ProvenanceGate, Field(discriminator="kind")]

EVIDENCE_VERSION = 5
"""Raised whenever code finds otherwise, or shows a judge otherwise what it found."""

_PLAIN: TypeAdapter[Any] = TypeAdapter(tuple[Any, ...])


class CascadeCheck(JudgeCheck):
    """A judged criterion on which code has the first word.

    Where the evidence contradicts, that is the outcome, and nobody is asked: a judge could only be talked out of it. All else
    is asked, with the evidence in view. Without a judge, contradictions are found all the same, and nothing else is scored.
    """

    kind: Literal["cascade"] = "cascade"  # pyright: ignore[reportIncompatibleVariableOverride] (its own place in the union)
    evidence: Evidence
    """The check that looks first: `narration` or `provenance`."""
    veto: Annotated[float, Field(ge=0, le=1)] | None = 0.0
    """The highest score the judge may give what the evidence contradicts. 0: it is not asked. null: it is free to give any."""

    default_aggregate: ClassVar[Aggregate] = "min"

    @lazy
    def evidence_digest(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] (lazy of its own class)
        """sha256 of the check that looks first, of how much it leaves to the judge, and of the version of both."""
        kept = [EVIDENCE_VERSION, self.evidence.model_dump(mode="json"), self.veto]
        return sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def find_parts(self, judges: Mapping[str, Judge]) -> frozenset[Part]:
        """What the judge looks at and what code looks at before."""
        return super().find_parts(judges) | self.evidence.looks_at

    def build_asks(
        self,
        case: Case,
        *,
        criterion: str,
        judges: Mapping[str, Judge],
        answered: Collection[Subject] = (),
    ) -> Iterable[tuple[Subject, Ask | Outcome]]:
        """What the evidence decides, and one question for each step, turn or the trace that it leaves open."""
        asked = super().build_asks(case, criterion=criterion, judges=judges)
        if answered and not [subject for subject, _ in asked if not is_answered(subject, answered)]:
            return asked  # looking costs
        found = _group_by_subject(self.evidence, case)
        settled = [(subject, self._settle(open_one, *found.pop(subject, (None, None)))) for subject, open_one in asked]
        proofs = [(at, proof) for at, (proof, _) in found.items() if proof is not None and self._proves(proof)]
        return [*settled, *proofs]

    def _settle(self, open_one: Ask | Outcome, evidence: EvidencedScore | None, gap: Skipped | None) -> Ask | Outcome:
        if evidence is not None and self._proves(evidence):
            return evidence
        if not isinstance(open_one, Ask):
            return open_one
        asked = open_one if gap is None else open_one._replace(gap=gap)
        seen = [one for one in (evidence, gap) if isinstance(one, EvidencedScore | Suspicion)]
        if not seen:
            return asked
        against = [
            finding for one in seen if not isinstance(one, EvidencedScore) or not one.passed for finding in one.findings
        ]
        veto = self.veto if evidence is not None and not evidence.passed else None
        return asked._replace(evidence=_render_evidence(seen), findings=tuple(against), veto=veto)

    def _proves(self, evidence: EvidencedScore) -> bool:
        """Whether the evidence is the outcome, whatever a judge might say."""
        return not evidence.passed and self.veto == 0.0


EvidenceView = tuple[EvidencedScore | None, Skipped | None]
"""The evidence on a subject, and why there is none on all of it."""


def _group_by_subject(check: NarrationGate | ProvenanceGate, case: Case) -> dict[Subject, EvidenceView]:
    """What the evidence says of each subject; of several texts in a turn, all of it."""
    found: dict[Subject, EvidenceView] = {}
    for subject, outcome in check.look(case):
        evidence, gap = found.get(subject, (None, None))
        if isinstance(outcome, EvidencedScore):
            evidence = outcome if evidence is None else _join_evidence(evidence, outcome)
        elif isinstance(outcome, Skipped) and outcome.open:
            gap = _join_gaps(gap, outcome)
        found[subject] = evidence, gap
    return found


def _join_evidence(one: EvidencedScore, other: EvidencedScore) -> EvidencedScore:
    return EvidencedScore(
        min(one.value, other.value),
        one.passed and other.passed,
        (*one.findings, *other.findings),
        (*one.evidence, *other.evidence),
    )


def _join_gaps(gap: Skipped | None, other: Skipped) -> Skipped:
    """Of several texts that are open, all that is suspected; of what is merely not read, the first."""
    if isinstance(gap, Suspicion) and isinstance(other, Suspicion):
        return replace(gap, findings=(*gap.findings, *other.findings), evidence=(*gap.evidence, *other.evidence))
    return other if gap is None or isinstance(other, Suspicion) else gap


def _render_evidence(seen: Sequence[EvidencedScore | Suspicion]) -> JsonValue:
    """The evidence as a judge is shown it: what was found of each claim or argument, without what is not known."""
    every = tuple([entry for one in seen for entry in one.evidence])
    entries = cast("list[dict[str, JsonValue]]", _PLAIN.dump_python(every, mode="json"))
    return [
        {name: value for name, value in entry.items() if value is not None and name not in ("start", "end")}
        for entry in entries
    ]
