"""Outcomes that carry their evidence."""

from __future__ import annotations

from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.evidence.provenance.located import LeafOrigin
from service.core.models.light import light
from service.core.outcome import Scored, Skipped


@light
class EvidencedScore(Scored):
    """A score with its evidence: the origin of each argument, or the verdict on each claim."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()


@light
class Suspicion(Skipped):
    """A problem that code suspects but cannot prove, with its evidence: open until a judge or a human decides."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()
