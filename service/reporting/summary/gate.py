"""What came of assertions on a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.core.rubric import Stage

Status = Literal["passed", "failed", "undecided", "warned", "error", "skipped"]
"""passed: it holds whatever comes of what is open. failed: it holds in no case. undecided: that depends on what is open.
warned: does not hold for certain, and is only to be told. error: no case measured it, which is never a pass. skipped: by
request."""


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """One assertion. `actual` is the number over what was measured (None: nothing was), of `cases` cases."""

    assertion: str
    status: Status
    actual: float | None
    cases: int
    """Cases that count, those that are open included."""
    unmeasured: int
    """Cases of which nothing was measured."""
    broke_at: Stage | None
    """The step of the contract that broke most often among the cases that do not hold."""
    failing: tuple[str, ...]
    """Ids of cases that do not hold: the first twenty."""
    message: str
    low: float | None = None
    """The number with all that is open at worst; what must hold for the assertion to pass."""
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """All assertions. It passes when every one does; it fails when one failed or no case measured it; else it is undecided."""

    passed: bool
    broke_at: Stage | None
    """The step of the first assertion that failed."""
    results: tuple[AssertionResult, ...]
    undecided: bool = False
