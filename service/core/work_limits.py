"""Limits on the work for one item. Work is counted, never timed, so that every machine scores or refuses the same items.

Exceeding a limit on what the sender wrote is an InputError with the pointer and the number. Exceeding a limit on what one check
does leaves that check's outcomes open (`too_long`). The limits keep any body of 100 kB under some three seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import maxsize
from typing import Literal

MAX_WEIGHED_PAIRS = 10_000
"""Pairs of an expected and an actual call of one tool that are weighed each against each, after those that agree are paired."""
MAX_ALIGNMENT_COMPARISONS = 100_000
"""Comparisons of arguments, each with its own score, in the alignment of one item."""
MAX_COMPARISONS = 1_000_000
"""Comparisons that the checks of one item make beside the alignment (calls with positions, values with values), or
`MAX_COMPARISONS_PER_CALL` for each call, whichever is more."""
MAX_COMPARISONS_PER_CALL = 200
COST_OF_A_VIOLATION = 50
"""How many comparisons one violation of a schema, or of a ban under Apple's metrics, counts as."""
COST_OF_A_MATCHER = 8
"""How many comparisons one use of a cheap matcher counts as."""
MAX_TEXT_CHARS = 30_000_000
"""Characters that matchers read in one item. A text counts each time it is read, and ten times if its similarity is
measured."""
COST_OF_A_CHARACTER = 10
"""How often a character counts that the dearest matcher reads."""
MAX_LOOKS = 2_000_000
"""Texts and results searched for arguments without an index; each counts every time."""
MAX_OUTCOMES = 50_000
"""Outcomes in one report, or `MAX_OUTCOMES_PER_CALL` for each call, whichever is more."""
MAX_OUTCOMES_PER_CALL = 16
MAX_FINDING_CHARS = 2_000_000
"""Characters in the messages and pointers of one report's findings, or `MAX_FINDING_CHARS_PER_CALL` for each call, whichever
is more."""
MAX_FINDING_CHARS_PER_CALL = 1_000
FEW_CALLS = 1_000
"""The number of calls up to which no limit is raised."""
MAX_CRITERIA = 2_000
"""Criteria in one rubric."""
MAX_JUDGES = 200
"""Judges that come with one rubric."""
MAX_QUESTIONS = 1_000
"""Requests to judges for one item, counting every vote of every model, if no setting says otherwise. A trace of 200 calls,
each in its own turn, takes 800 under four_step without an expectation."""
MAX_JURY = 20
"""Models in one jury."""
MAX_NEAR_NAMES = 100_000
"""Names compared with others in one item, to suggest what may have been meant."""
MAX_NAME_CHARS = 256
"""Characters of a name that suggestions compare and show."""

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
    """One item takes more work than allowed."""

    def __init__(self, amount: str, most: int) -> None:
        super().__init__(f"{amount}; at most {most} in one item")


class Meter:
    """Counts the work done for one item.

    >>> meter = Meter({"names": 3})
    >>> meter.spend("names", 2)
    >>> meter.can_afford("names", 2), meter.can_afford("names", 1)
    (False, True)
    """

    def __init__(self, limits: Mapping[Work, int] = LIMITS, *, calls: int = 0) -> None:
        """`calls` is the number of calls in the item; more than `FEW_CALLS` raise the limits."""
        self.limits = limits if calls <= FEW_CALLS else _raise_limits(limits, calls)
        self.spent: dict[Work, int] = {**_NOTHING_SPENT}

    def can_afford(self, work: Work, units: int) -> bool:
        """Whether that many more units are within the limit."""
        return self.spent[work] + units <= self.limits[work]

    def spend(self, work: Work, units: int = 1) -> None:
        """Count work that is about to be done. Raises OverBudgetError if it exceeds the limit."""
        self.spent[work] += units
        if self.spent[work] > self.limits[work]:
            self.require_room(work)

    def require_room(self, *works: Work) -> None:
        """Raise OverBudgetError for the first of these that already exceeds its limit."""
        for work in works:
            if self.spent[work] > self.limits[work]:
                raise OverBudgetError(f"{self.spent[work]} {work}", self.limits[work])


def count_text_chars(values: Iterable[object]) -> int:
    """Count the characters of all texts inside, without keys; any other value counts as one.

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
