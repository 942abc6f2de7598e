"""How far two or more annotators agree, raw and corrected for chance. A figure that is undefined is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from service.stats.tallies import Floats


class ConfusionTable(NamedTuple):
    """The two-by-two table of a judge's verdicts against labels; the positive class is "passes".

    Counts may be fractional weights.
    """

    tp: float = 0.0
    """Both pass."""
    fp: float = 0.0
    """Only the judge passes."""
    fn: float = 0.0
    """Only the label passes."""
    tn: float = 0.0
    """Both fail."""

    @property
    def n(self) -> float:
        """The total weight of all items."""
        return fsum(self)

    @property
    def prevalence(self) -> float | None:
        """The share of items that the labels pass."""
        return divide(self.tp + self.fn, self.n)

    @property
    def passed(self) -> float | None:
        """The share of items that the judge passes."""
        return divide(self.tp + self.fp, self.n)

    @property
    def accuracy(self) -> float | None:
        """The share of items on which judge and label agree."""
        return divide(self.tp + self.tn, self.n)

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of the recalls of both classes; None where a class has no items."""
        passes, fails = self.recall, self.fail_recall
        return None if passes is None or fails is None else (passes + fails) / 2

    @property
    def precision(self) -> float | None:
        """The share of the judge's passes that the labels pass too."""
        return divide(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The share of the labels' passes that the judge passes too."""
        return divide(self.tp, self.tp + self.fn)

    @property
    def fail_precision(self) -> float | None:
        """The share of the judge's failures that the labels fail too."""
        return divide(self.tn, self.tn + self.fn)

    @property
    def fail_recall(self) -> float | None:
        """The share of the labels' failures that the judge fails too."""
        return divide(self.tn, self.tn + self.fp)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, in [-1, 1]; None where both give one same verdict throughout, because chance then explains everything.

        Cohen 1960, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20:37-46.

        >>> round(ConfusionTable(20, 5, 10, 15).kappa, 4)
        0.4
        """
        judge, label = self.passed or 0.0, self.prevalence or 0.0
        return self._correct_for_chance(judge * label + (1 - judge) * (1 - label))

    @property
    def ac1(self) -> float | None:
        """Gwet's AC1, in [-1, 1]. Where nearly all items are of one class it stays close to the accuracy, while kappa collapses.

        Gwet 2008, "Computing inter-rater reliability and its variance in the presence of high agreement", BJMSP 61:29-48.

        >>> table = ConfusionTable(118, 5, 2, 0)
        >>> round(table.ac1, 4), round(table.kappa, 4)
        (0.9408, -0.0234)
        """
        share = ((self.passed or 0.0) + (self.prevalence or 0.0)) / 2
        return self._correct_for_chance(2 * share * (1 - share))

    def _correct_for_chance(self, chance: float) -> float | None:
        return None if self.accuracy is None or chance >= 1 else (self.accuracy - chance) / (1 - chance)


def divide(part: float, whole: float) -> float | None:
    """Return part / whole, or None where `whole` is not above 0."""
    return part / whole if whole > 0 else None


def build_confusion(labels: Iterable[bool], verdicts: Iterable[bool]) -> ConfusionTable:
    """Tabulate a judge's verdicts against labels, item by item; ValueError where one list is longer.

    >>> build_confusion([True, True, False], [True, False, False])
    ConfusionTable(tp=1, fp=0, fn=1, tn=1)
    """
    counts = Counter(zip(labels, verdicts, strict=True))
    return ConfusionTable(counts[True, True], counts[False, True], counts[True, False], counts[False, False])


def compare_annotators(sides: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Tabulate one annotator against another, for each unit; all ordered pairs of its annotators together weigh 1.

    `sides` of shape (units, 2): how many annotators pass and fail each. Returns the cells of a `ConfusionTable`, each of shape
    (units,); all 0 for a unit with fewer than two annotators. One with 50 counts as much as one with two.
    """
    passed, failed = sides.T
    pairs = ((passed + failed) * (passed + failed - 1)).clip(1)
    mixed = passed * failed / pairs
    return passed * (passed - 1) / pairs, mixed, mixed, failed * (failed - 1) / pairs


def compute_alpha(sides: Floats, weights: Floats) -> float | None:
    """Compute Krippendorff's alpha of labels that pass or fail, each unit counted as often as its weight says.

    `sides` as for `compare_annotators`. In (-1, 1]; None where no two labels can be paired or all labels are equal. Takes any
    number of annotators, who may differ from unit to unit. Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    sizes = sides.sum(axis=1)
    kept = weights * (sizes > 1)
    totals = kept @ sides
    n = float(totals.sum())
    expected = n * n - float((totals**2).sum())
    differing = float((kept * 2 * sides.prod(axis=1) / (sizes - 1).clip(1)).sum())
    return None if expected <= 0 else 1 - (n - 1) * differing / expected
