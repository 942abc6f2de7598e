"""What a fit guarantees, and what labels certify of it: lower bounds of the passes and failures that it recognises."""

from __future__ import annotations

from datetime import date
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


CERTIFIED_ERROR = 0.05
"""The chance that a bound of the first look is too high. Each later look at the same labels may spend half of the one before,
so all looks together err in at most twice this share of cases."""


class Recognised(FrozenModel):
    """How many labels of one kind verdicts recognise, and the exact (Clopper-Pearson) lower bounds of their share."""

    labels: int = Field(ge=0)
    recognised: int = Field(ge=0)
    low: Share
    """For this judge alone."""
    low_in_all: Share
    """With the error divided by the number of judges that were certified together; the one that counts."""
    floor: Share
    """What the bound must reach."""
    needed: int | None = None
    """How many labels of this kind, these among them, would reach it in the next look, at the share observed (all, if there are
    none yet); None: it is reached, or no number would."""

    @model_validator(mode="after")
    def _in_order(self) -> Recognised:
        share = self.recognised / self.labels if self.labels else 0.0
        if not self.low_in_all - NOISE <= self.low <= share + NOISE or self.recognised > self.labels:
            raise ValueError("expected low_in_all <= low <= recognised / labels <= 1")
        return self

    @property
    def reached(self) -> bool:
        """Whether the bound reaches the floor."""
        return self.low_in_all >= self.floor

    def explain_missing(self, kind: str) -> str:
        """Explain what is missing; empty if it is reached. `kind`: what its labels are of, passes or failures."""
        more, wanted = (self.needed or 0) - self.labels, "labels do not help at that share"
        wanted = f"{more} more {kind} needed ({self.needed} in all)" if self.needed else wanted
        return "" if self.reached else f"; {wanted}"


class Certificate(FrozenModel):
    """One look at a set of labels. Both bounds must reach their floors; as one claim needs both, neither is corrected for two."""

    passes: Recognised
    failures: Recognised
    labels: str = Field(pattern=r"^[0-9a-f]{64}$")
    """sha256 of the items with their criteria, groups and labels, independent of their order."""
    look: int = Field(ge=1)
    """Which look at these labels, or at some of them, it was."""
    judges: int = Field(ge=1)
    """How many judges were certified together."""
    made: Annotated[date, Field(strict=False)]

    @property
    def error(self) -> float:
        """The error that this look may spend."""
        return spend_error(self.look)

    @property
    def certified(self) -> bool:
        """Whether both bounds reach their floors."""
        return self.passes.reached and self.failures.reached

    def explain(self) -> str:
        """Explain it in a sentence, with the bounds and what is missing."""
        parts = [
            f"{one.recognised} of {one.labels} {name} recognised, at least {one.low:.3f}"
            + (f" alone and {one.low_in_all:.3f} in all" if self.judges > 1 else "")
            + f" (asked: {one.floor:g}{one.explain_missing(name)})"
            for name, one in (("passes", self.passes), ("failures", self.failures))
        ]
        start = "certified" if self.certified else "not certified"
        looks = "" if self.look == 1 else f"; look {self.look} at these labels, so with an error of {self.error:g}"
        return f"{start}: {', '.join(parts)}, with {1 - self.error:.2%} confidence{looks}"


def spend_error(look: int) -> float:
    """Return the error that a look may spend: half as much as the one before.

    >>> spend_error(1), spend_error(3)
    (0.05, 0.0125)
    """
    return CERTIFIED_ERROR / 2 ** (look - 1)
