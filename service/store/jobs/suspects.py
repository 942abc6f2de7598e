"""Which item of a chunk takes its worker down. Of one that was there three times nothing more is tried.

From the first death under a chunk on it is written down which of its items are under way, and each further death is laid to
those alone. Who was there once is worked on alone in its process, those of whom most is known first: so the second and third
death can be laid to no other, unless a worker is killed from outside at the same moment again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

QUARANTINE_AT = 3
"""Deaths after which an item is not tried any more; the last two of them alone."""

ALONE_AT = 1
"""Deaths from which on an item is worked on alone."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """What is known of the deaths under a chunk; items by their positions."""

    deaths: int = 0
    """Openings that ended with their worker."""
    under_way: frozenset[int] = frozenset()
    """The items that were begun last; written down from the first death on."""
    blamed: Mapping[int, int] = field(default_factory=dict[int, int])
    """At how many deaths an item was under way."""

    def of(self, position: int) -> int:
        """How many deaths are laid to an item."""
        return self.blamed.get(position, 0)

    def after_death(self, left: Collection[int]) -> Suspects:
        """What is known after one more; `left`: the items without an outcome.

        >>> once = Suspects().after_death({1, 2})
        >>> twice = once.mark_begun({2}).after_death({1, 2})
        >>> [found.of(position) for found in (once, twice) for position in (1, 2)]
        [0, 0, 0, 1]
        """
        more = {position: self.of(position) + 1 for position in self.under_way.intersection(left)}
        return Suspects(self.deaths + 1, frozenset(), {**self.blamed, **more})

    def mark_begun(self, positions: Iterable[int]) -> Suspects:
        """The same with other items under way."""
        return replace(self, under_way=frozenset(positions))

    def find_quarantined(self, left: Iterable[int]) -> frozenset[int]:
        """Those that are not tried any more."""
        return frozenset(position for position in left if self.of(position) >= QUARANTINE_AT)

    def as_json(self) -> str:
        """What is kept of it beside the number of deaths."""
        return json.dumps({"under_way": sorted(self.under_way), "blamed": self.blamed}, separators=(",", ":"))


def parse_suspects(deaths: int, text: str) -> Suspects:
    """What was kept.

    >>> parse_suspects(1, Suspects(1).mark_begun({7}).as_json()).under_way
    frozenset({7})
    """
    kept = json.loads(text)
    blamed = {int(position): count for position, count in kept.get("blamed", {}).items()}
    return Suspects(deaths, frozenset(kept.get("under_way", ())), blamed)
