"""What a fit guarantees about the verdicts it accepts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from service.core.judging.fits.maps import NOISE, Share
from service.core.models.kinds import FrozenModel

GuaranteedShare = Annotated[float, Field(ge=0.5, lt=1)]


class Guarantee(FrozenModel):
    """A promise that accepted verdicts agree with humans in at least `share` of cases, on either side.

    Verdicts that are not accepted are left to others. The limits are raw values of the judge, as tested. If neither side is
    set, no threshold keeps the promise.
    """

    share: GuaranteedShare
    confidence: Share = 0.95
    """The confidence that the promise holds for everything accepted."""
    passes_from: Share | None = None
    """The lowest raw value accepted as a pass; None: no pass is accepted."""
    fails_to: Share | None = None
    """The highest raw value accepted as a failure; None: no failure is accepted."""

    @model_validator(mode="after")
    def _apart(self) -> Guarantee:
        if self.passes_from is not None and self.fails_to is not None and self.fails_to >= self.passes_from:
            raise ValueError("fails_to must lie below passes_from")
        return self

    @property
    def accepts_any(self) -> bool:
        """Whether any threshold keeps the promise."""
        return self.passes_from is not None or self.fails_to is not None

    def accepts(self, raw: float, *, passed: bool | None = None) -> bool:
        """Whether a raw value in [0, 1] is accepted; if `passed` is given, as that verdict.

        >>> [Guarantee(share=0.9, passes_from=0.8).accepts(raw) for raw in (0.1, 0.8)]
        [False, True]
        >>> Guarantee(share=0.9, passes_from=0.8).accepts(0.8, passed=False)
        False
        """
        passes = self.passes_from is not None and raw >= self.passes_from - NOISE
        fails = self.fails_to is not None and raw <= self.fails_to + NOISE
        return (passes and passed is not False) or (fails and passed is not True)
