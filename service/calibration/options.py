"""How a calibration run is set up: what is held out, which verdicts a guaranteed share of agreement accepts, its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256

import numpy as np

from service.calibration.figures import HeldOutItem, Resampling
from service.calibration.fitting import MethodChoice
from service.calibration.labels import LabelledItem, Split
from service.core.judging.fits.certificate import Guarantee
from service.errors import InputError
from service.stats.corrected import code_groups
from service.stats.selective import find_certainty_threshold

SEED = "callgrade"
"""The only default; it was not searched for."""
FOLDS = 5
"""Each item is held out once, from a map fitted on the other four fifths of the groups."""


def names_split(items: Iterable[LabelledItem]) -> bool:
    """Whether any item says which side it must be on: these sides are then the split, and nothing is left to chance."""
    return any(item.split is not None for item in items)


def read_split(items: Sequence[LabelledItem]) -> Mapping[str, Split]:
    """Return the side of each group, as its items say. If any item says `test`, a silent group is fitted, otherwise held out.

    InputError where two items of a group name different sides.
    """
    sides: dict[str, Split | None] = {}
    for item in items:
        known = sides.setdefault(item.group, item.split)
        if item.split is not None and known is not None and known != item.split:
            raise InputError.at(item.id, f"the group {item.group!r} is to be on both sides of the split")
        sides[item.group] = known or item.split
    default_side: Split = "fit" if "test" in sides.values() else "test"
    return {name: side or default_side for name, side in sides.items()}


def assign_folds(items: Iterable[LabelledItem], *, seed: str = SEED, folds: int = FOLDS) -> Mapping[str, int]:
    """Return the fold of each group, from 0: groups are dealt out in the order of the hash of their names.

    The order of items therefore does not matter, and another seed gives other folds. With fewer groups than folds, each has
    its own.
    """
    names = sorted({item.group for item in items}, key=lambda name: sha256(f"{seed}\0{name}".encode()).hexdigest())
    return {name: at % folds for at, name in enumerate(names)}


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
