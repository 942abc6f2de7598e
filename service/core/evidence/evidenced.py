"""A score that carries its evidence."""

from __future__ import annotations

from dataclasses import dataclass

from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.evidence.provenance.located import LeafOrigin
from service.core.outcome import Scored


@dataclass(frozen=True, slots=True)
class EvidencedScore(Scored):
    """A score with what it rests on: where each argument comes from, or what became of each claim."""

    evidence: tuple[LeafOrigin | ClaimVerdict, ...] = ()
