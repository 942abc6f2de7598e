"""A method that gives everybody half."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.case import Case
from service.core.checks import WHOLE, Check, SubjectOutcome
from service.core.outcome import Scored


class HalfGate(Check):
    """0.5 for the trace."""

    kind: Literal["half"] = "half"

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for the trace."""
        return [(WHOLE, Scored(number_of(case), passed=False))]


def number_of(case: Case) -> float:
    """Half, of whatever was called."""
    return 0.5 if case.trace.steps else 0.0
