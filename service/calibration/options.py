"""How a calibration run is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from service.calibration.figures import Resampling
from service.calibration.fitting import Choice
from service.calibration.promising import LEVELS
from service.calibration.splits import FOLDS, SEED


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a run is made. Nothing in it was searched for on labels."""

    seed: str = SEED
    folds: int = FOLDS
    """Into how many parts groups are dealt, each held out once; unused where the items say which are held out."""
    method: Choice = "auto"
    own_threshold: float = 0.75
    """The least raw value that passes before calibration."""
    resampling: Resampling = field(default_factory=Resampling)
    decided: float = 0.8
    """The least share of items that must be decided with the abstain band, where no guarantee is asked for."""
    guarantee: float | None = None
    """The share of accepted verdicts that is to agree with humans, in [0.5, 1); None: fits promise nothing."""
    cascade: tuple[str, ...] = ()
    """The names of judges in the order in which they are asked, each of what the one before leaves; needs `guarantee`."""
    levels: tuple[float, ...] = LEVELS
    """The shares that the report tells the coverage of."""
    worst: int = 20
    """How many disagreements are listed for each judge."""
    splits: int = 0
    """How often groups are dealt out anew to measure the calibration error again."""
    jury: bool = True
    stack: bool = False
    """Whether recorded judges are also tried together in one logistic sum."""
    made: date | None = None
    """The day of the run, which its fits keep."""

    @property
    def shares(self) -> tuple[float, ...]:
        """All that is tested."""
        return tuple(sorted({*self.levels, *([] if self.guarantee is None else [self.guarantee])}))
