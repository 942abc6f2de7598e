"""Find the item that brings down the workers of a chunk. After its third death an item is not tried again.

From a chunk's first death on, the store records which of its items are under way, and each further death counts against those
alone. An item with one death runs alone in its process, the most suspect first: so its second and third death can be blamed
on no other item, unless a worker is killed from outside at that very moment again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

QUARANTINE_DEATHS = 3
"""Deaths after which an item is not tried again; during the last two it ran alone."""

ALONE_DEATHS = 1
"""Deaths from which on an item runs alone."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """What is known of the deaths under a chunk; items are given by position."""

    deaths: int = 0
    """Attempts that ended with the death of their worker."""
    under_way: frozenset[int] = frozenset()
    """The items that were begun last; recorded from the first death on."""
    blamed: Mapping[int, int] = field(default_factory=dict[int, int])
    """For each item, at how many deaths it was under way."""

    def count_deaths(self, position: int) -> int:
        """Return how many deaths count against an item."""
        return self.blamed.get(position, 0)

    def add_death(self, left: Collection[int]) -> Suspects:
        """Return the suspects after one more death; `left`: the items without an outcome.

        >>> once = Suspects().add_death({1, 2})
        >>> twice = once.mark_under_way({2}).add_death({1, 2})
        >>> [suspects.count_deaths(position) for suspects in (once, twice) for position in (1, 2)]
        [0, 0, 0, 1]
        """
        more = {position: self.count_deaths(position) + 1 for position in self.under_way.intersection(left)}
        return Suspects(self.deaths + 1, frozenset(), {**self.blamed, **more})

    def mark_under_way(self, positions: Iterable[int]) -> Suspects:
        """Return the same suspects with other items under way."""
        return replace(self, under_way=frozenset(positions))

    def find_quarantined(self, left: Iterable[int]) -> frozenset[int]:
        """Return the items that are not tried again."""
        return frozenset(position for position in left if self.count_deaths(position) >= QUARANTINE_DEATHS)

    def to_json(self) -> str:
        """Render what is stored besides the number of deaths."""
        return json.dumps({"under_way": sorted(self.under_way), "blamed": self.blamed}, separators=(",", ":"))


def parse_suspects(deaths: int, text: str) -> Suspects:
    """Read the stored suspects.

    >>> parse_suspects(1, Suspects(1).mark_under_way({7}).to_json()).under_way
    frozenset({7})
    """
    stored = json.loads(text)
    blamed = {int(position): count for position, count in stored.get("blamed", {}).items()}
    return Suspects(deaths, frozenset(stored.get("under_way", ())), blamed)
