"""Numbers of results and messages, from which another number may be computed in one step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations, islice, permutations

from service.core.evidence.arithmetic.holding import read_number
from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.fitting import is_of_kind
from service.core.evidence.reading.quantities import Quantity
from service.core.models.lazy import lazy

MAX_NUMBERS, MAX_BARE, MAX_GROUPS = 600, 120, 60
"""Limits on the numbers of one sort, on the stated numbers used as factors, and on the columns or records searched."""
MAX_PAIRED, MAX_WHOLES = 24, 300
"""Limits on the numbers of a column or record paired with each other, and on wholes that a share is tried on."""
MAX_TOLD = 40
"""Numbers of a text that are paired with each other."""
MAX_RUN = 8
"""Most consecutive numbers of a text that are added up."""
EPSILON = 1e-6
_FEW = (1, 2, 3, 4)
_PEOPLE = (2, 3, 4)
"""Numbers of people for whom a result may be multiplied: `that saves you $40 together`."""


class NumberColumns:
    """The numbers of results in the terms of a quantity, grouped by column and by record, with sums and products of these."""

    def __init__(self, said: Quantity, holdings: Holdings) -> None:
        columns: dict[object, list[tuple[float, Fact]]] = {}
        records: dict[object, list[tuple[float, Fact]]] = {}
        found: dict[float, None] = {}
        for fact in holdings.facts:
            if is_of_kind(said, fact) and (number := read_number(said, fact)) is not None:
                found[float(abs(number))] = None
                columns.setdefault(fact.path[-1:], []).append((float(abs(number)), fact))
                records.setdefault((id(fact.record), fact.path[:-1]), []).append((float(abs(number)), fact))
        self._columns, self._records = (
            [*islice((group for group in groups.values() if len(group) > 1), MAX_GROUPS)]
            for groups in (columns, records)
        )
        self._groups = [*self._columns, *self._records]
        self.values = [*islice(found, MAX_NUMBERS)]

    @lazy
    def totals(self) -> list[tuple[float, Fact]]:
        """The total of each column, with its first fact."""
        return [(sum(number for number, _ in group), group[0][1]) for group in self._columns]

    @lazy
    def sums(self) -> list[float]:
        """The totals and averages of columns and records, whole and in part."""
        return [*islice(dict.fromkeys(total for group in self._groups for total in _iter_totals(group)), MAX_NUMBERS)]

    @lazy
    def products(self) -> list[float]:
        """The numbers multiplied and divided by others of their records, and the totals of these products."""
        return [*islice(dict.fromkeys(made for group in self._groups for made in _iter_products(group)), MAX_NUMBERS)]

    @lazy
    def pairs(self) -> list[float]:
        """The sums and differences of any two numbers of a column or a record, sorted."""
        found: set[float] = set()
        for group in self._groups:
            numbers = [*{number for number, _ in group[:MAX_PAIRED]}]
            for n, one in enumerate(numbers):
                found.update(way for other in numbers[:n] for way in (one + other, abs(one - other)))
        return sorted(found)

    @lazy
    def mixes(self) -> list[float]:
        """What a few of one number and a few of another of its column or record come to, sorted: two adults, a child."""
        found: set[float] = set()
        for group in self._groups:
            for one, other in combinations({number for number, _ in group[:MAX_PAIRED]}, 2):
                found.update(n * one + m * other for n in _FEW for m in _FEW)
        return sorted(found)

    @lazy
    def shares(self) -> list[float]:
        """What part each number is of its column's total, and any number of a record of another one there, sorted."""
        found = {
            number / total for group in self._columns if (total := sum(n for n, _ in group)) for number, _ in group
        }
        for group in self._records:
            found |= _list_shares([number for number, _ in group[:MAX_PAIRED]])
        return sorted(found | {abs(1 - share) for share in found})


class KnownNumbers:
    """Numbers of results and messages from which another may be computed in one step."""

    def __init__(self, columns: NumberColumns, heard: Sequence[float], told: Sequence[float]) -> None:
        """`told`: numbers of the text itself, from which others may be computed although they are no source themselves."""
        self._columns = columns
        self._told = told
        self._words = [*dict.fromkeys((*told, *heard))][:MAX_BARE]
        self._known = sorted({*columns.values, *columns.sums, *columns.products, *heard})
        self._all = sorted({*self._known, *told})

    @lazy
    def _runs(self) -> list[float]:
        """The sums of consecutive numbers of the text, sorted."""
        starts = range(len(self._told))
        return sorted(
            {sum(self._told[n:end]) for n in starts for end in range(n + 2, min(n + MAX_RUN, len(self._told)) + 1)}
        )

    def has_pair(self, size: float, tolerance: float) -> bool:
        """Whether `size` is a sum or difference of two numbers that belong together, or of a stated number and any other."""
        if has_near(self._columns.pairs, size, tolerance) or has_near(self._runs, size, tolerance):
            return True
        parts = (*self._words, *self._columns.sums[:MAX_BARE])
        return any(
            has_near(self._all, size + part, tolerance) or has_near(self._all, abs(size - part), tolerance)
            for part in parts
            if part > 2 * tolerance and part not in (size, 2 * size)  # a number cannot be computed from itself
        )

    @lazy
    def _told_pairs(self) -> list[float]:
        """The sums and differences of any two numbers of the text, sorted."""
        pairs = combinations(self._told[:MAX_TOLD], 2)
        return sorted({way for one, other in pairs for way in (one + other, abs(one - other))})

    @lazy
    def _told_shares(self) -> list[float]:
        """What part any number of the text is of another one, sorted."""
        found = _list_shares(self._told[:MAX_TOLD])
        return sorted(found | {abs(1 - share) for share in found})

    @property
    def totals(self) -> list[tuple[float, Fact]]:
        """The total of each column, with its first fact."""
        return self._columns.totals

    def has_mix(self, size: float, tolerance: float) -> bool:
        """Whether `size` is what a few of one number and a few of another of its column or record come to."""
        return has_near(self._columns.mixes, size, tolerance)

    def has_close(self, size: float, tolerance: float) -> bool:
        """Whether `size` is known, or a sum or difference of two numbers of a column, a record or the text."""
        near = self._known, self._columns.pairs, self._runs, self._told_pairs
        return any(has_near(numbers, size, tolerance) for numbers in near)

    def has_close_share(self, part: float, tolerance: float) -> bool:
        """Whether a number is this part of its column, of another of its record, or of another of the text."""
        return has_near(self._columns.shares, part, tolerance) or has_near(self._told_shares, part, tolerance)

    def has_shared_pair(self, size: float, tolerance: float) -> bool:
        """Whether `size` is the sum or difference of two numbers of a column or record, times a few people."""
        return any(has_near(self._columns.pairs, size / n, tolerance / n) for n in _PEOPLE)

    def has_multiple(self, size: float, factors: Sequence[float], shares: Sequence[float], tolerance: float) -> bool:
        """Whether `size` is a multiple, a fraction or a share of one of the numbers, or one raised or lowered by a share."""
        whole = [n for n in factors if n != size]
        ways = {*whole, *(1 / n for n in whole), *shares}
        ways |= {way for one in shares for way in (1 + one, 1 - one)}
        return any(has_near(self._all, size / way, tolerance / way) for way in ways if way > 0 and way != 1)

    def has_share(self, part: float, tolerance: float) -> bool:
        """Whether one of the numbers is this part of another, or is larger or smaller than another by this part."""
        ways = [way for way in (part, 1 + part, abs(1 - part)) if way not in (0, 1)]
        return any(
            has_near(self._all, whole * way, tolerance * whole) for way in ways for whole in self._all[:MAX_WHOLES]
        )


def has_near(ordered: Sequence[float], number: float, tolerance: float) -> bool:
    """Whether one of sorted numbers lies within `tolerance` of a number."""
    at = bisect_left(ordered, number - tolerance - EPSILON)
    return at < len(ordered) and ordered[at] <= number + tolerance + EPSILON


def _list_shares(numbers: Sequence[float]) -> set[float]:
    return {one / other for one, other in permutations(numbers, 2) if other}


def _iter_totals(group: Sequence[tuple[float, Fact]]) -> Iterator[float]:
    """Iterate over totals of a column or record: of all, without one, running, and by the value of another field."""
    numbers = [number for number, _ in group]
    total = sum(numbers)
    yield from (total, total / len(numbers))
    yield from (total - number for number in numbers[:MAX_GROUPS])
    yield from islice(accumulate(numbers), MAX_GROUPS)
    kinds: dict[tuple[object, object], list[float]] = {}
    for number, fact in group:
        for other in fact.record.facts[:MAX_PAIRED]:
            if isinstance(other.value, str | bool) and other is not fact:
                kinds.setdefault((other.path, other.value), []).append(number)
    for some in islice(kinds.values(), MAX_GROUPS):
        yield from (sum(some), sum(some) / len(some))


def _iter_products(group: Sequence[tuple[float, Fact]]) -> Iterator[float]:
    """Iterate over numbers times, and divided by, others of their records, and over columns weighted by another."""
    weighed: dict[tuple[str, ...], float] = {}
    for number, fact in group:
        for other in fact.record.facts[:MAX_PAIRED]:
            if other is not fact and len(other.quantities) == 1 and (factor := other.quantities[0].number):
                product = number * float(abs(factor))
                weighed[other.path] = weighed.get(other.path, 0.0) + product
                yield from (product, number / float(abs(factor)))
    for total in islice(weighed.values(), MAX_GROUPS):
        yield from (total, total / 100)
