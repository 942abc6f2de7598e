"""What a rubric asks of judges at most: questions for each call, each turn with an answer, and each trace."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from service.core.judging.judges import JudgeCheck
from service.core.rubric import Rubric


class QuestionCounts(NamedTuple):
    """Questions, each vote one; those in `spared` are not put where an expectation lets code decide."""

    call: int
    turn: int
    trace: int
    spared: int


def count_questions(rubric: Rubric) -> QuestionCounts:
    """What the criteria of a rubric ask, as long as code decides nothing. Matchers in words ask one more each."""
    counts: Counter[str] = Counter()
    for criterion in rubric.criteria:
        check = criterion.check
        if isinstance(check, JudgeCheck):
            judge = rubric.judges_by_id[check.judge]
            asked = judge.votes * max(1, len(judge.models))
            counts[judge.level] += asked
            counts["spared"] += asked * (check.unless is not None)
    return QuestionCounts(counts["step"], counts["turn"], counts["trace"], counts["spared"])
