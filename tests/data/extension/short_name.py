"""Tools with short names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.case import Case, build_call_path
from service.core.checks import Check, SubjectOutcome
from service.core.outcome import PERFECT, Finding, build_failure


class ShortNameGate(Check):
    """Each call: 1.0 where the name of its tool is short."""

    kind: Literal["short_name"] = "short_name"
    most: int = 8

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each step."""
        for step in case.trace.steps:
            long = build_failure(0.0, Finding("long_name", f"more than {self.most} characters", build_call_path(step)))
            yield case.subjects[step.index], PERFECT if len(step.call.name) <= self.most else long
