"""What judges may be asked for one request, and what they may cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from service.core.judging.judges import Ask
from service.core.work_limits import MAX_QUESTIONS
from service.errors import InputError


@dataclass(frozen=True, slots=True)
class AskLimits:
    """The limits of one request, or of one item of a batch."""

    questions: int = MAX_QUESTIONS
    """Requests to models, every vote of every model of every question; those of repairs and retries do not count."""
    usd: float | None = None
    """None: as much as it takes."""

    def admit_questions(self, asks: Iterable[Ask]) -> None:
        """InputError where more would be asked than may be."""
        votes = sum([ask.judge.samples * max(1, len(ask.judge.models)) for ask in asks])
        if votes > self.questions:
            told = (
                f"{votes} requests to judges; at most {self.questions} for one item (CALLGRADE_REQUEST_MAX_QUESTIONS)"
            )
            raise InputError.at("/rubric/criteria", told)

    def admit_budget(self, budget_usd: float | None) -> None:
        """InputError for a budget that is more than may be spent."""
        if budget_usd is not None and self.usd is not None and budget_usd > self.usd:
            told = f"expected at most {self.usd:g} (CALLGRADE_REQUEST_MAX_USD), not {budget_usd:g}"
            raise InputError.at("/budget_usd", told)
