"""The options of a calibration run, and which verdicts a guaranteed share of agreement accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from service.calibration.figures import HeldOutItem, Resampling
from service.calibration.fitting import MethodChoice
from service.calibration.splits import FOLDS, SEED
from service.core.judging.fits.certificate import Guarantee
from service.stats.corrected import code_groups
from service.stats.selective import find_certainty_threshold

GUARANTEE_ERROR = 0.05
"""The chance that a guarantee may fail."""
TESTED_ERROR_PART = 1 / 3
"""The part of the error at which levels are tested. The rest covers what was learned from these very labels: which values
form one level, and in which order passes and failures alternate. On D2T-Eval, a half would break the guarantees of judges
with many values in 9 % of 500 splits."""
REPORTED_SHARES = (0.8, 0.85, 0.9, 0.95)
"""The shares of agreement for which every report gives the coverage."""


def find_guarantees(items: Sequence[HeldOutItem], shares: Sequence[float]) -> dict[float, Guarantee]:
    """For each share, find as many verdicts as possible that provably agree with labels in at least that share of cases.

    Passes and failures form one sequence, from the most certain calibrated value downwards, tested at `TESTED_ERROR_PART` of the
    error.
    """
    values, passes = np.array([one.value for one in items]), np.array([one.passed for one in items], dtype=np.bool_)
    labels, groups = np.array([one.label for one in items], dtype=np.bool_), code_groups([one.group for one in items])
    certainty, agrees = np.where(passes, values, 1 - values), labels == passes
    found = dict[float, Guarantee]()
    for share in shares:
        tested_error = GUARANTEE_ERROR * TESTED_ERROR_PART
        threshold = find_certainty_threshold(certainty, agrees, passes, groups, share=share, error=tested_error)
        sure = zip(items, certainty.tolist(), strict=True)
        accepted = [one for one, at in sure if threshold is not None and at >= threshold]
        found[share] = Guarantee(
            share=share,
            confidence=1 - GUARANTEE_ERROR,
            passes_from=min([one.raw for one in accepted if one.passed], default=None),
            fails_to=max([one.raw for one in accepted if not one.passed], default=None),
        )
    return found


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
