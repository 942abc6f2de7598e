"""Limits on the judges' questions for one request, and on their cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from service.core.judging.judges import Ask
from service.core.work_limits import MAX_QUESTIONS
from service.errors import InputError


@dataclass(frozen=True, slots=True)
class AskLimits:
    """The limits of one request, or of one item of a batch."""

    max_questions: int = MAX_QUESTIONS
    """Requests to models: every vote of every model on every question; repairs and retries do not count."""
    max_usd: float | None = None
    """None: unlimited."""

    def admit_questions(self, asks: Iterable[Ask]) -> None:
        """Raise InputError if there are more questions than allowed."""
        votes = sum([ask.judge.samples * max(1, len(ask.judge.models)) for ask in asks])
        if votes > self.max_questions:
            message = f"{votes} requests to judges; at most {self.max_questions} for one item (CALLGRADE_REQUEST_MAX_QUESTIONS)"
            raise InputError.at("/rubric/criteria", message)

    def admit_budget(self, budget_usd: float | None) -> None:
        """Raise InputError for a budget above what may be spent."""
        if budget_usd is not None and self.max_usd is not None and budget_usd > self.max_usd:
            message = f"expected at most {self.max_usd:g} (CALLGRADE_REQUEST_MAX_USD), not {budget_usd:g}"
            raise InputError.at("/budget_usd", message)
