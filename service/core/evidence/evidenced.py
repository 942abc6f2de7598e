"""A score that carries its evidence."""

from __future__ import annotations

from dataclasses import dataclass

from service.core.evidence.located import Located
from service.core.evidence.verdicts import ClaimVerdict
from service.core.outcome import Scored


@dataclass(frozen=True, slots=True)
class Evidenced(Scored):
    """A score with what it rests on: where each argument comes from, or what became of each claim."""

    evidence: tuple[Located | ClaimVerdict, ...] = ()
