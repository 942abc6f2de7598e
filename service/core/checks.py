"""What a check is: it looks at a case and gives an outcome for each thing it looked at."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeVar, get_args

from service.core.models.kinds import FrozenModel
from service.core.outcome import PERFECT, Finding, Outcome, PartialOutcome, Scored, Skipped
from service.core.work_limits import OverBudgetError

if TYPE_CHECKING:
    from service.core.case import Case
    from service.core.expectations.expectation import CallPattern
    from service.core.trace import Step

T = TypeVar("T")

Aggregate = Literal["mean", "min"]


Aspect = Literal[
    "none",
    "some",
    "tools",
    "extra",
    "order",
    "args",
    "result",
    "disallowed",
    "counts",
    "answer",
    "said",
    "state",
    "output",
]
"""What an expectation can say: that nothing is called, that something is, which tools, that there are no other calls, in which
order, with which arguments and results, and the fields of these names."""

ASPECTS: frozenset[Aspect] = frozenset(get_args(Aspect))


Part = Literal["call", "result", "text"]
"""What a check can look at of a trace: the calls, what they returned, what the assistant said."""


class Subject(NamedTuple):
    """What an outcome speaks of: a step, an expected call that was not made, a turn, or (all None) the whole trace."""

    step: int | None = None
    expected: int | None = None
    turn: int | None = None


WHOLE = Subject()

SubjectOutcome = tuple[Subject, Outcome | PartialOutcome]
"""One outcome, or as much of it as code can tell, and what it speaks of."""


@lru_cache(maxsize=1024)
def build_subject(step: int | None, turn: int | None) -> Subject:
    """The subject of a step or a turn: most traces have the same few."""
    return Subject(step, None, turn)


class Check(FrozenModel):
    """The base of all checks. A subclass names its `kind` and lives in one file with its doctests."""

    default_aggregate: ClassVar[Aggregate] = "mean"
    """How a criterion folds the outcomes when the rubric does not say."""

    ignores_step_failures: ClassVar[bool] = False
    """Whether it says something of a step whatever went wrong before at that step; it is then blocked with the turn alone."""

    reads: ClassVar[frozenset[Aspect]] = frozenset()
    """What of an expectation it holds a trace against. A check whose settings narrow that has its own `aspects`."""

    looks_at: ClassVar[frozenset[Part]] = frozenset({"call"})
    """What of a trace it looks at: where a part of that kind could not be read, what rests on it is open."""

    idle_outcome: ClassVar[Skipped | None] = None
    """What it comes to where an expectation says nothing of what it reads. None: it looks at more than expectations."""

    has_own_number: ClassVar[bool] = False
    """Whether it carries a published method, whose own number `compat` in the rubric asks for."""

    def aspects(self) -> frozenset[Aspect]:
        """What of an expectation it holds a trace against, as it is set."""
        return self.reads

    @abstractmethod
    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """The outcomes that code decides."""

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:  # noqa: ARG002
        """What pairing these two is worth, 0..1; only checks that compare arguments say anything."""
        return 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:  # noqa: ARG002
        """Whether `score_pair` follows from which arguments both sides have and which of them are equal, by typed equality."""
        return False


def collect_outcomes(
    case: Case, look: Callable[[Case], Iterable[tuple[Subject, T]]]
) -> list[tuple[Subject, T | Skipped]]:
    """What a check sees of a case, counted as it comes; where it goes over the budget of its item, that alone.

    A part of what a check sees would be another result than all of it.
    """
    meter = case.meter
    spent, most = meter.spent, meter.limits["outcomes"]
    try:
        if spent["outcomes"] > most or spent["finding characters"] > meter.limits["finding characters"]:
            meter.require_room("outcomes", "finding characters")
        seen = look(case)
        found: list[tuple[Subject, T | Skipped]] = seen if type(seen) is list else [*islice(seen, most + 1)]  # pyright: ignore[reportAssignmentType, reportUnknownVariableType] (the list as it is)
        count = spent["outcomes"]
        for _, outcome in found:
            count += 1
            if outcome is PERFECT or (type(outcome) is Skipped and not outcome.findings):
                continue
            if isinstance(outcome, WITH_FINDINGS) and outcome.findings:
                meter.spend("finding characters", _count_chars(outcome.findings))
        spent["outcomes"] = count
        if count > most:
            spent["outcomes"] = most + 1  # so many were looked at
            meter.require_room("outcomes")
    except OverBudgetError as error:
        return [(WHOLE, Skipped("too_long", f"the work of this check goes over its budget: {error}"))]
    return found


def _count_chars(findings: Iterable[Finding]) -> int:
    return sum([len(finding.message) + len(finding.path) for finding in findings])


WITH_FINDINGS = (Scored, Skipped, PartialOutcome)
