"""What came of assertions on a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.core.rubric import Stage

Status = Literal["passed", "failed", "warned", "error", "skipped"]
"""warned: did not hold, and is only to be told. error: no case measured it, which is never a pass. skipped: by request."""


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """One assertion. `actual` is what was compared (None: nothing to compare), over `cases` cases."""

    assertion: str
    status: Status
    actual: float | None
    cases: int
    """Cases that count, those that could not be measured included: they do not hold."""
    unmeasured: int
    broke_at: Stage | None
    """The step of the contract that broke most often among the cases that do not hold."""
    failing: tuple[str, ...]
    """Ids of cases that do not hold: the first twenty."""
    message: str


@dataclass(frozen=True, slots=True)
class Gate:
    """All assertions. It passes when none failed or could not be told."""

    passed: bool
    broke_at: Stage | None
    """The step of the first assertion that failed."""
    results: tuple[AssertionResult, ...]
