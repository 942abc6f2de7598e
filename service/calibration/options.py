"""The options of a calibration run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from service.calibration.figures import Resampling
from service.calibration.fitting import MethodChoice
from service.calibration.guarantees import REPORTED_SHARES
from service.calibration.splits import FOLDS, SEED

OWN_THRESHOLD = 0.75
"""The least raw value that passes before calibration."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The options of a calibration run. No default was tuned on labels."""

    seed: str = SEED
    folds: int = FOLDS
    """How many parts groups are dealt into, each held out once; unused where the items say which are held out."""
    method: MethodChoice = "auto"
    resampling: Resampling = field(default_factory=Resampling)
    guarantee: float | None = None
    """The share of accepted verdicts that must agree with humans, in [0.5, 1); None: fits guarantee nothing."""
    reported_shares: tuple[float, ...] = REPORTED_SHARES
    """The shares of agreement for which every report gives the coverage."""
    max_disagreements: int = 20
    """How many disagreements are listed per judge."""
    jury: bool = True
    made: date | None = None
    """The day of the run, which its fits record."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Every share of agreement that is tested."""
        return tuple(sorted({*self.reported_shares, *([] if self.guarantee is None else [self.guarantee])}))
