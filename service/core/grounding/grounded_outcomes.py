"""Outcomes that carry where each value comes from."""

from __future__ import annotations

from service.core.grounding.ground import Grounded
from service.core.models.light import light
from service.core.outcome import Scored, Skipped


@light
class GroundedScore(Scored):
    """A score with the origin of each value of a text, or of each argument of a call."""

    grounding: tuple[Grounded, ...] = ()


@light
class Suspicion(Skipped):
    """A problem that code suspects and cannot prove, with the origins: open until a judge or a human decides."""

    grounding: tuple[Grounded, ...] = ()
