"""Whether a judge tells passes from failures: the one rule that reports, installation and scoring follow.

All figures are of held-out labels, with 95 % intervals from drawing whole groups. AUROC is that of raw values (for a jury,
under weights that have not seen the item); balanced accuracy and kappa are of verdicts under maps that have not seen it. A
coin has an AUROC of 0.5. A judge that always says the majority label has a balanced accuracy of 0.5 and a kappa of 0, however
high its accuracy is, so these two test against the majority label. The permutation test moves the labels of whole groups.

- `cannot tell`: fewer than 50 labels, 10 groups, or 10 labels of either kind; a set with one kind only is such a set, and
  so are 8 labels that are all right. Also where the labels exclude neither chance nor a judge worth having (see below).
- `useful`: the low ends of all three intervals lie above chance, and the permutation test has p <= 0.05.
- `inverted`: otherwise, where the high end of AUROC lies below 0.5: it gives failures the higher values.
- `useless`: otherwise, where the high end of AUROC or of balanced accuracy lies below `WORTH`: more labels would at best show
  a judge that is not worth having.

Only a useful fit is installed, is applied, or guarantees anything.
"""

from __future__ import annotations

from math import ceil, inf
from statistics import NormalDist
from typing import Literal

from pydantic import Field, model_validator

from service.core.judging.fits.maps import Share
from service.core.models.kinds import FrozenModel

Use = Literal["useful", "useless", "inverted", "cannot tell"]

_WORDS: dict[Use, str] = {
    "useful": "it tells passes from failures",
    "inverted": "it gives failures the higher values; check which end of its scale passes",
    "useless": "it tells passes from failures no better than chance or the majority label",
}
CHANCE = 0.5
"""The AUROC, and the balanced accuracy, of a judge that tells nothing."""
WORTH = 0.7
"""An AUROC or balanced accuracy that a judge worth having reaches."""
MAX_P = 0.05
MIN_LABELS = 50
MIN_GROUPS = 10
MIN_CLASS_LABELS = 10
"""The floor: with fewer labels, fewer groups, or fewer labels of the rarer class, nothing is called calibrated. Below it the
interval of kappa is about as wide as kappa's own range, and says nothing."""


class Metric(FrozenModel):
    """A statistic on items that were held out, with its 95 % interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "undefined"
        return f"{self.value:.3f}" + ("" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]")


class Discrimination(FrozenModel):
    """How well a judge tells held-out passes from failures, and the verdict on its use, which must follow from the figures."""

    use: Use
    passing: int = Field(ge=0)
    """Held-out labels that pass."""
    failing: int = Field(ge=0)
    groups: int = Field(ge=0)
    auroc: Metric
    balanced_accuracy: Metric
    kappa: Metric
    p_value: Share | None
    """The chance of an AUROC as high if labels had nothing to do with values; None for labels of one kind."""

    @model_validator(mode="after")
    def _follow_rule(self) -> Discrimination:
        if self.use != (found := self.judge_use()):
            raise ValueError(f"its figures make the judge {found!r}, and the file says {self.use!r}")
        return self

    def judge_use(self) -> Use:
        """Judge the use by the rule above."""
        if self._count_lacking():
            return "cannot tell"
        auroc, balanced, kappa = self.auroc, self.balanced_accuracy, self.kappa
        lows = [-inf if end is None else end for end in (auroc.low, balanced.low, kappa.low)]
        if min(lows[:2]) > CHANCE and lows[2] > 0 and self.p_value is not None and self.p_value <= MAX_P:
            return "useful"
        if auroc.high is not None and auroc.high < CHANCE:
            return "inverted"
        known = [one.high for one in (auroc, balanced) if one.high is not None]
        return "useless" if min(known, default=1.0) < WORTH else "cannot tell"

    def _count_lacking(self) -> int:
        """Count the labels that the floor still asks for."""
        by_class = sum(max(0, MIN_CLASS_LABELS - count) for count in (self.passing, self.failing))
        return max(by_class, MIN_LABELS - self.passing - self.failing, MIN_GROUPS - self.groups, 0)

    def count_more(self) -> int:
        """Count how many more labels would tell: those that the floor lacks, else by the width of the intervals.

        Widths shrink with the root of the number of labels, until chance or `WORTH` is excluded. 0 where the use is known.
        """
        if self.use != "cannot tell":
            return 0
        if lacking := self._count_lacking():
            return lacking
        p, normal, below = self.p_value or 1.0, NormalDist(), [inf]
        above = [(normal.inv_cdf(MAX_P) / normal.inv_cdf(p)) ** 2 if p < CHANCE else inf]
        for one in (self.auroc, self.balanced_accuracy):
            if one.value is not None and one.low is not None and one.high is not None:
                above.append(((one.value - one.low) / (one.value - CHANCE)) ** 2 if one.value > CHANCE else inf)
                below.append(((one.high - one.value) / (WORTH - one.value)) ** 2 if one.value < WORTH else inf)
        factor = min(max(above), *below)
        n = self.passing + self.failing
        return max(1, ceil(n * (factor - 1))) if factor < inf else n

    def explain(self) -> str:
        """Explain the use with the figures, and how many labels would tell where they are too few."""
        figures = (
            f"AUROC {self.auroc}, balanced accuracy {self.balanced_accuracy}, kappa {self.kappa}, permutation test p = "
            f"{'undefined' if self.p_value is None else f'{self.p_value:.3f}'}, on {self.passing} held-out passes and "
            f"{self.failing} failures of {self.groups} groups"
        )
        if self.use != "cannot tell":
            return f"{self.use}: {_WORDS[self.use]} (by its own values: {figures})"
        floors = (MIN_CLASS_LABELS, "passes"), (MIN_CLASS_LABELS, "failures"), (MIN_GROUPS, "of new groups")
        counts = (self.passing, self.failing, self.groups)
        kinds = [f"{least - n} {name}" for (least, name), n in zip(floors, counts, strict=True) if n < least]
        among = f", at least {' and '.join(kinds)} among them" if kinds else ""
        return f"cannot tell: label {self.count_more()} more{among} ({figures})"
