"""Where a value of a text or an argument comes from, as reports hold it."""

from __future__ import annotations

from typing import Literal

from service.core.models.light import light
from service.core.outcome import Scored, Skipped

Origin = Literal["found", "derived", "given", "general", "nowhere", "not_looked_for"]


@light
class Nearest:
    """A held value: its text and its pointer, or how it would be derived."""

    value: str
    pointer: str
    how: str | None = None


@light
class Grounded:
    """A value and where it comes from.

    `pointer` is the text's, or the argument's; `start` and `end` are characters of it. `sources` are pointers of what holds the
    value, or of what it is derived from, and `how` says how. Of a value that stands nowhere, or may be there by chance (rounded,
    in another unit, derived, general), `nearest` are the held values that come closest.
    """

    value: str
    pointer: str
    origin: Origin
    sources: tuple[str, ...] = ()
    how: str | None = None
    nearest: tuple[Nearest, ...] = ()
    start: int | None = None
    end: int | None = None
    code: str | None = None
    """The code of the finding against it, if code proves it wrong or suspects it."""


@light
class GroundedScore(Scored):
    """A score with the origin of each value of a text, or of each argument of a call."""

    grounding: tuple[Grounded, ...] = ()


@light
class GroundedSkip(Skipped):
    """What code alone does not decide, with the origins: open where it suspects a problem, else left out where judges are off."""

    grounding: tuple[Grounded, ...] = ()
