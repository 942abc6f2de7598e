"""The work that one item may take. It is counted and never timed: an item is scored, or refused, alike on every machine.

A limit on what the sender wrote is told with its pointer and the number (InputError). A limit on what one check does leaves
that check's outcomes open (`too_long`). The limits are set so that no body of 100 kB takes more than about a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import maxsize
from typing import Literal

MAX_ALIGNMENT_PAIRS = 1_000_000
"""Pairs of an expected call and a call made that are weighed against each other at once: 1,000 calls against 1,000."""
MAX_ALIGNMENT_COMPARISONS = 100_000
"""Comparisons of arguments, each with its own result, that the alignment of one item makes."""
MAX_COMPARISONS = 1_000_000
"""Comparisons that the checks of one item make beside the alignment (calls with places in an order, values with values), or
`MAX_COMPARISONS_PER_CALL` for each call made, whichever is more."""
MAX_COMPARISONS_PER_CALL = 200
COST_OF_A_VIOLATION = 50
"""Comparisons that one violation of a schema, or of a ban under Apple's metrics, counts as."""
COST_OF_A_MATCHER = 8
"""Comparisons that one look of a cheap matcher counts as."""
MAX_TEXT_CHARS = 30_000_000
"""Characters that matchers read in one item. A text counts each time that it is read, and ten times where it is
measured how similar it is."""
MAX_LOOKS = 2_000_000
"""Texts and results that arguments are looked for in without an index, each counting each time."""
MAX_OUTCOMES = 50_000
"""Outcomes in one report, or `MAX_OUTCOMES_PER_CALL` for each call made, whichever is more."""
MAX_OUTCOMES_PER_CALL = 16
MAX_FINDING_CHARS = 2_000_000
"""Characters in the messages and pointers of one report's findings, or `MAX_FINDING_CHARS_PER_CALL` for each call made."""
MAX_FINDING_CHARS_PER_CALL = 1_000
FEW_CALLS = 1_000
"""So many raise no limit."""
MAX_CRITERIA = 2_000
"""Criteria of one rubric."""
MAX_JUDGES = 200
"""Judges that one rubric brings."""
MAX_QUESTIONS = 1_000
"""Requests to judges for one item, every vote of every model of every question, where no setting says otherwise. A trace of
200 calls, each in a turn of its own, takes 800 under four_step with no expectation."""
MAX_JURY = 20
"""Models of one judge."""
MAX_NEAR_NAMES = 100_000
"""Names that are held against others in one item, to suggest what may have been meant."""
MAX_NAME_CHARS = 256
"""Characters of a name that a suggestion looks at and shows."""

Work = Literal["comparisons", "looks", "characters", "outcomes", "finding characters", "names"]

LIMITS: Mapping[Work, int] = {
    "comparisons": MAX_COMPARISONS,
    "looks": MAX_LOOKS,
    "characters": MAX_TEXT_CHARS,
    "outcomes": MAX_OUTCOMES,
    "finding characters": MAX_FINDING_CHARS,
    "names": MAX_NEAR_NAMES,
}


UNBOUNDED: Mapping[Work, int] = dict.fromkeys(LIMITS, maxsize)
_NOTHING_SPENT: Mapping[Work, int] = dict.fromkeys(LIMITS, 0)


def _raise_limits(limits: Mapping[Work, int], calls: int) -> Mapping[Work, int]:
    per_call: Mapping[Work, int] = {
        "outcomes": MAX_OUTCOMES_PER_CALL,
        "finding characters": MAX_FINDING_CHARS_PER_CALL,
        "comparisons": MAX_COMPARISONS_PER_CALL,
    }
    return {work: max(most, calls * per_call.get(work, 0)) for work, most in limits.items()}


class OverBudgetError(Exception):
    """More work than one item may take."""

    def __init__(self, said: str, most: int) -> None:
        super().__init__(f"{said}; at most {most} in one item")


class Meter:
    """The work done for one item so far.

    >>> meter = Meter({"names": 3})
    >>> meter.spend("names", 2)
    >>> meter.can_afford("names", 2), meter.get_remaining("names")
    (False, 1)
    """

    def __init__(self, limits: Mapping[Work, int] = LIMITS, *, calls: int = 0) -> None:
        """`calls`: those of the item; very many raise the limits."""
        self.limits = limits if calls <= FEW_CALLS else _raise_limits(limits, calls)
        self.spent: dict[Work, int] = {**_NOTHING_SPENT}

    def get_remaining(self, work: Work) -> int:
        """How much more of it there may be."""
        return self.limits[work] - self.spent[work]

    def can_afford(self, work: Work, units: int) -> bool:
        """Whether so much more is within the limit."""
        return units <= self.get_remaining(work)

    def spend(self, work: Work, units: int = 1) -> None:
        """Counts work that is about to be done. Raises OverBudgetError where it goes over the limit."""
        self.spent[work] += units
        if self.spent[work] > self.limits[work]:
            self.require_room(work)

    def require_room(self, *works: Work) -> None:
        """Raises OverBudgetError for the first of these that is over its limit already."""
        for work in works:
            if self.spent[work] > self.limits[work]:
                raise OverBudgetError(f"{self.spent[work]} {work}", self.limits[work])


def count_text_chars(values: Iterable[object]) -> int:
    """The characters of all texts inside, keys left out; any other value counts as one.

    >>> count_text_chars([{"a": "four", "b": ["two", 2, None]}])
    9
    """
    count, waiting = 0, list(values)
    while waiting:
        value = waiting.pop()
        count += len(value) if isinstance(value, str) else not isinstance(value, Mapping | list | tuple)
        if isinstance(value, Mapping):
            waiting.extend(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        elif isinstance(value, list | tuple):
            waiting.extend(value)  # pyright: ignore[reportUnknownArgumentType]
    return count
