"""What a look at labels certifies of a fit: lower bounds of how many passes and failures its verdicts recognise."""

from __future__ import annotations

from datetime import date

from pydantic import Field, model_validator

from service.core.judging.fits.maps import NOISE, Share
from service.core.models.kinds import FrozenModel

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
    """How many labels of this kind would reach it at the share observed; None: it is reached, or no number would."""

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

    def explain_missing(self) -> str:
        """Explain what is missing; empty if it is reached."""
        wanted = f"{self.needed} labels needed" if self.needed else "no number of labels would do"
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
    made: date

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
            + f" (asked: {one.floor:g}{one.explain_missing()})"
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
