"""How far two or more annotators agree, with and without what chance explains. Figures that are undefined are None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class ConfusionTable(NamedTuple):
    """A two-by-two table of a judge's verdicts against labels; the positive class is "passes". Weights may be fractions."""

    tp: float = 0.0
    """Passed by both."""
    fp: float = 0.0
    """Passed by the judge alone."""
    fn: float = 0.0
    """Passed by the label alone."""
    tn: float = 0.0
    """Failed by both."""

    @property
    def n(self) -> float:
        """The weight of all items."""
        return fsum(self)

    @property
    def prevalence(self) -> float | None:
        """The share that the labels pass."""
        return compute_ratio(self.tp + self.fn, self.n)

    @property
    def passed(self) -> float | None:
        """The share that the judge passes."""
        return compute_ratio(self.tp + self.fp, self.n)

    @property
    def accuracy(self) -> float | None:
        """The share of equal verdicts."""
        return compute_ratio(self.tp + self.tn, self.n)

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of the recalls of both classes; None where a class has no item."""
        passes, fails = compute_ratio(self.tp, self.tp + self.fn), compute_ratio(self.tn, self.tn + self.fp)
        return None if passes is None or fails is None else (passes + fails) / 2

    @property
    def precision(self) -> float | None:
        """Of what the judge passes, the share that the labels pass."""
        return compute_ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Of what the labels pass, the share that the judge passes."""
        return compute_ratio(self.tp, self.tp + self.fn)

    @property
    def fail_precision(self) -> float | None:
        """Of what the judge fails, the share that the labels fail."""
        return compute_ratio(self.tn, self.tn + self.fn)

    @property
    def fail_recall(self) -> float | None:
        """Of what the labels fail, the share that the judge fails."""
        return compute_ratio(self.tn, self.tn + self.fp)

    @property
    def kappa(self) -> float | None:
        """Cohen 1960, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20:37-46.

        In [-1, 1]; None where both always say the same one thing, for then chance explains all.

        >>> round(ConfusionTable(20, 5, 10, 15).kappa, 4)
        0.4
        """
        n = self.n
        if not n:
            return None
        judge, label = (self.tp + self.fp) / n, (self.tp + self.fn) / n
        return _correct_for_chance((self.tp + self.tn) / n, judge * label + (1 - judge) * (1 - label))

    @property
    def ac1(self) -> float | None:
        """Gwet 2008, "Computing inter-rater reliability and its variance in the presence of high agreement", BJMSP 61:29-48.

        In [-1, 1]. Where nearly all items are of one class it stays close to the share of equal verdicts, and kappa does not.

        >>> table = ConfusionTable(118, 5, 2, 0)
        >>> round(table.ac1, 4), round(table.kappa, 4)
        (0.9408, -0.0234)
        """
        n = self.n
        if not n:
            return None
        share = ((self.tp + self.fp) / n + (self.tp + self.fn) / n) / 2
        return _correct_for_chance((self.tp + self.tn) / n, 2 * share * (1 - share))


def compute_ratio(part: float, whole: float) -> float | None:
    """Part of whole; None where there is no whole."""
    return part / whole if whole > 0 else None


def _correct_for_chance(observed: float, chance: float) -> float | None:
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def build_confusion(labels: Iterable[bool], verdicts: Iterable[bool]) -> ConfusionTable:
    """The table of a judge's verdicts against labels, item by item; ValueError where one list is longer.

    >>> build_confusion([True, True, False], [True, False, False])
    ConfusionTable(tp=1, fp=0, fn=1, tn=1)
    """
    cells = Counter(zip(labels, verdicts, strict=True))
    return ConfusionTable(cells[True, True], cells[False, True], cells[True, False], cells[False, False])


def compare_annotators(units: Iterable[Mapping[bool, int]]) -> ConfusionTable:
    """One annotator against another, over units of counts by label: every ordered pair of a unit, weighed to 1 a unit.

    Units with fewer than two labels say nothing. So the table is symmetric, and a unit with 50 annotators counts like one
    with two.

    >>> compare_annotators([{True: 2}, {True: 1, False: 1}, {False: 1}])
    ConfusionTable(tp=1.0, fp=0.5, fn=0.5, tn=0.0)
    """
    cells = [_count_pairs(unit.get(True, 0), unit.get(False, 0)) for unit in units]
    return ConfusionTable(*(fsum(column) for column in zip(*cells, strict=True))) if cells else ConfusionTable()


def _count_pairs(passed: int, failed: int) -> ConfusionTable:
    pairs = (passed + failed) * (passed + failed - 1)
    if not pairs:
        return ConfusionTable()
    mixed = passed * failed / pairs
    return ConfusionTable(passed * (passed - 1) / pairs, mixed, mixed, failed * (failed - 1) / pairs)


def compute_alpha(units: Iterable[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's alpha for nominal labels; each unit lists its labels, None for one that is missing.

    Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C. In (-1, 1]; None where fewer than two labels
    can be paired or all of them are equal. Any number of annotators, who may differ from unit to unit.

    >>> a, b = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> round(compute_alpha(zip(a, b)), 3)
    0.095
    """
    return compute_alpha_of_counts(Counter(label for label in unit if label is not None) for unit in units)


def compute_alpha_of_counts(units: Iterable[Mapping[K, int]]) -> float | None:
    """The same from counts by label."""
    total: Counter[K] = Counter()
    differing: list[float] = []
    for unit in units:
        size = sum(unit.values())
        if size < 2:
            continue
        total.update(unit)
        differing.append((size * size - sum(count * count for count in unit.values())) / (size - 1))
    n = sum(total.values())
    expected = n * n - sum(count * count for count in total.values())
    return None if expected <= 0 else 1 - (n - 1) * fsum(differing) / expected
