"""The base of all checks: a check looks at a case and returns an outcome for each thing it looked at."""

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
    "none", "some", "tools", "extra", "order", "args", "result", "disallowed", "counts", "answer", "said", "state",
    "output",
]  # fmt: skip
"""What an expectation can specify. none: no calls. some: at least one call. tools: which tools. extra: no other calls. order,
args, result: of the calls. The others: the fields of the same names."""

ASPECTS: frozenset[Aspect] = frozenset(get_args(Aspect))


Part = Literal["call", "result", "text"]
"""The parts of a trace that a check can look at: calls, their results, the assistant's texts."""


class Subject(NamedTuple):
    """What an outcome is about: a step, an expected call that was not made, a turn, or (all None) the whole trace."""

    step: int | None = None
    expected: int | None = None
    turn: int | None = None


WHOLE = Subject()

SubjectOutcome = tuple[Subject, Outcome | PartialOutcome]
"""What an outcome is about, and the outcome, or the part of it that code can decide."""


@lru_cache(maxsize=1024)
def build_subject(step: int | None, turn: int | None) -> Subject:
    """Return the subject of a step or turn, cached: most traces share the same few."""
    return Subject(step, None, turn)


class Check(FrozenModel):
    """The base of all checks. A subclass names its `kind` and lives in one file with its doctests."""

    default_aggregate: ClassVar[Aggregate] = "mean"
    """How a criterion folds its outcomes if the rubric does not say."""

    ignores_step_failures: ClassVar[bool] = False
    """Whether it applies to a step even after another check failed there; then only a failure of its turn or trace blocks it."""

    reads: ClassVar[frozenset[Aspect]] = frozenset()
    """The aspects of an expectation that it checks. A check that narrows them by its settings overrides `aspects`."""

    looks_at: ClassVar[frozenset[Part]] = frozenset({"call"})
    """The parts of a trace it looks at. If one of them could not be read, outcomes that depend on it are open."""

    idle_outcome: ClassVar[Skipped | None] = None
    """Its outcome if the expectation says nothing about what it reads; None if it looks at more than the expectation."""

    has_own_number: ClassVar[bool] = False
    """Whether it implements a published method, whose own number the rubric's `compat` asks for."""

    def aspects(self) -> frozenset[Aspect]:
        """Return the aspects of an expectation that it checks under its settings."""
        return self.reads

    @abstractmethod
    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return the outcomes that code decides."""

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:  # noqa: ARG002
        """Return what pairing a pattern with a step is worth, in [0, 1]; 0 for checks that do not compare arguments."""
        return 0.0

    def accepts_pair(self, case: Case, pattern: CallPattern, step: Step) -> bool:
        """Whether a step's arguments pass for a pattern."""
        return self.score_pair(case, pattern, step) == 1.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:  # noqa: ARG002
        """Whether `score_pair` depends only on which arguments each side has and which are equal by typed equality."""
        return False


def collect_outcomes(
    case: Case, look: Callable[[Case], Iterable[tuple[Subject, T]]]
) -> list[tuple[Subject, T | Skipped]]:
    """Return a check's outcomes for a case, counting them as they come.

    If the check goes over the work limits, return a single `too_long` outcome: some of its outcomes would give another result
    than all of them.
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
            spent["outcomes"] = most + 1  # as many as were looked at
            meter.require_room("outcomes")
    except OverBudgetError as error:
        return [(WHOLE, Skipped("too_long", f"the work of this check goes over its budget: {error}"))]
    return found


def _count_chars(findings: Iterable[Finding]) -> int:
    return sum([len(finding.message) + len(finding.path) for finding in findings])


WITH_FINDINGS = (Scored, Skipped, PartialOutcome)
