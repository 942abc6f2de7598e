"""Outcomes that carry their evidence."""

from __future__ import annotations

from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.evidence.provenance.located import LeafOrigin
from service.core.models.light import light
from service.core.outcome import Scored, Skipped


@light
class EvidencedScore(Scored):
    """A score with what it rests on: where each argument comes from, or what became of each claim."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()


@light
class Suspicion(Skipped):
    """What code suspects and cannot prove, with what that rests on: open until a judge or a human decides."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()
