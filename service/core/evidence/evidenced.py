"""Outcomes that carry their evidence."""

from __future__ import annotations

from dataclasses import dataclass

from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.evidence.provenance.located import LeafOrigin
from service.core.outcome import Scored, Skipped


@dataclass(frozen=True, slots=True)
class EvidencedScore(Scored):
    """A score with what it rests on: where each argument comes from, or what became of each claim."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspicion(Skipped):
    """What code suspects and cannot prove, with what that rests on: open until a judge or a human decides."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()
