"""The results of assertions on a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.core.rubric import Stage

Status = Literal["passed", "failed", "undecided", "error"]
"""passed: it holds however the open cases turn out. failed: it does not hold however they turn out. undecided: that depends
on the open cases. error: no case measured it, which is never a pass."""


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """One assertion. `actual` is the number over what was measured (None: nothing was), of `cases` cases."""

    assertion: str
    status: Status
    actual: float | None
    cases: int
    """Cases that count, the open ones included."""
    unmeasured: int
    """Cases of which nothing was measured."""
    first_failing_stage: Stage | None
    """The stage that failed most often among the cases that speak against it."""
    failing: tuple[str, ...]
    """Ids of the cases that speak against it: the first twenty."""
    message: str
    low: float | None = None
    """The number with everything open at worst; this must hold for the assertion to pass."""
    high: float | None = None
    """The same at best; no number in JSON if what is unknown has no bound, as a cost."""

    @property
    def failed_at(self) -> str:
        """Where it failed, in words; empty if it did not, or at no stage."""
        stage = self.first_failing_stage if self.status == "failed" else None
        return f"failed at {stage}" if stage else ""


@dataclass(frozen=True, slots=True)
class Gate:
    """All assertions. It passes when all do, fails when one failed or no case measured it, and is otherwise undecided."""

    passed: bool
    first_failing_stage: Stage | None
    """The step of the first assertion that failed."""
    results: tuple[AssertionResult, ...]
    undecided: bool = False
