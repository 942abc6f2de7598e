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
class GroundedSkip(Skipped):
    """What code alone does not decide, with the origins: open where it suspects a problem, else left out where judges are off."""

    grounding: tuple[Grounded, ...] = ()
