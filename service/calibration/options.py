"""How a calibration run is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from service.calibration.figures import Resampling
from service.calibration.fitting import Choice
from service.calibration.splits import SEED


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a run is made. Nothing in it was searched for on labels."""

    seed: str = SEED
    share: float = 0.5
    """The share of groups that are fitted."""
    method: Choice = "auto"
    own_threshold: float = 0.75
    """The least raw value that passes before calibration."""
    resampling: Resampling = field(default_factory=Resampling)
    decided: float = 0.8
    """The least share of items that must be decided with the abstain band."""
    worst: int = 20
    """How many disagreements are listed for each judge."""
    splits: int = 0
    """Over how many other splits the calibration error is measured again."""
    jury: bool = True
    made: date | None = None
    """The day of the run, which its fits keep."""
