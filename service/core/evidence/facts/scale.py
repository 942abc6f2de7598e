"""Sort all numbers of the results, to find those close to a given number without scanning them all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.quantities import Quantity, find_minor_factor, list_significant_digits
from service.core.evidence.reading.units import UNITS

MAX_NEAR = 200
"""Limit on the facts examined around a number."""
_ROUGH, _FINE = 0.12, 0.021


class Scale:
    """Facts sorted by the size of their numbers, with a separate order for money, percentages and each dimension."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        found: dict[str, list[tuple[float, int, Fact]]] = {}
        for n, fact in enumerate(facts):
            for dimension, size in _iter_sizes(fact):
                found.setdefault(dimension, []).append((size, n, fact))
        self._by_dimension = {dimension: sorted(each, key=_get_size) for dimension, each in found.items()}

    def find_near(self, said: Quantity, *, about: bool) -> list[Fact]:
        """Return facts close enough for `said` to express them, up to a limit. `about`: the text gives it roughly."""
        number = said.number
        if number is None:
            return []
        dimension, size, step = _measure(said)
        digits = len(list_significant_digits(number))
        share = _ROUGH if about else _FINE if said.places <= 0 and len(str(abs(int(number)))) - digits > 2 else 0.0
        tolerance = max(abs(size) * share, step) * 1.001 + 1e-9
        entries = self._by_dimension.get(dimension, [])
        first = bisect_left(entries, abs(size) - tolerance, key=_get_size)
        found: list[Fact] = []
        for entry_size, _, fact in entries[first : first + MAX_NEAR]:
            if entry_size > abs(size) + tolerance:
                break
            found.append(fact)
        return found


def _get_size(entry: tuple[float, int, Fact]) -> float:
    return entry[0]


def _measure(said: Quantity) -> tuple[str, float, float]:
    """Return the dimension, the size in its base unit, and the value of the last digit written."""
    number, step = float(said.number or 0), 10.0**-said.places
    if said.kind in ("measure", "duration"):
        unit = UNITS[said.unit]
        return unit.dimension, number * float(unit.factor) + float(unit.shift), step * float(unit.factor)
    return said.kind, number, step


def _iter_sizes(fact: Fact) -> Iterator[tuple[str, float]]:
    for held in fact.quantities:
        number, unit = held.number, held.unit or fact.counted.unit
        if number is None:
            continue
        size = abs(float(number))
        if held.kind == "number":
            yield from _iter_bare_sizes(fact, size)
        elif held.kind in ("money", "percent"):
            yield held.kind, size
        if unit in UNITS:
            dimension = UNITS[unit].dimension
            yield dimension, abs(float(number) * float(UNITS[unit].factor) + float(UNITS[unit].shift))


def _iter_bare_sizes(fact: Fact, size: float) -> Iterator[tuple[str, float]]:
    yield from (("number", size), ("percent", size), ("percent", size * 100))
    if fact.counted.minor:
        whole = size / float(find_minor_factor(fact.counted.currency))
        yield from (("money", whole), ("number", whole))
    elif not fact.counted.unit:
        yield from (("money", size), ("temperature", size))
