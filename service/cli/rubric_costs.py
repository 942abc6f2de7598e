"""How many questions a rubric asks judges at most: per call, per turn with an answer, and per trace."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from service.core.judging.judges import JudgeCheck
from service.core.rubric import Rubric


class QuestionCounts(NamedTuple):
    """Numbers of questions, counting each vote. Those in `avoidable` are not asked where an expectation lets code decide."""

    call: int
    turn: int
    trace: int
    avoidable: int


def count_questions(rubric: Rubric) -> QuestionCounts:
    """Count the questions of a rubric's criteria when code decides none of them. Each matcher in words adds one more."""
    counts: Counter[str] = Counter()
    for criterion in rubric.criteria:
        check = criterion.check
        if isinstance(check, JudgeCheck):
            judge = rubric.judges_by_id[check.judge]
            questions = judge.votes * max(1, len(judge.models))
            counts[judge.level] += questions
            counts["spared"] += questions * (check.unless is not None)
    return QuestionCounts(counts["step"], counts["turn"], counts["trace"], counts["spared"])
