"""What a judge is asked, as data. A judge never calls a model: `plan` lists the questions, the shell answers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from service.core.case import Case
from service.core.checks import WHOLE, Check, Subject
from service.core.kinds import Frozen, Several
from service.core.outcome import Outcome, Skipped

Level = Literal["step", "trace"]
Part = Literal["arguments", "result", "answer"]


class Judge(Frozen):
    """A question for a language model, one YAML file."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: int = Field(default=1, ge=1)
    level: Level
    """What one question is about."""
    requires: Several[Part] = ()
    """What must be captured for the question to make sense."""
    question: str = Field(min_length=1)
    scale: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(min_length=2)]
    """Label -> value in [0, 1]; the only answers a judge may give."""


class Ask(NamedTuple):
    """One question to a judge, about one step or (None) the whole trace."""

    criterion: str
    judge: Judge
    step: int | None = None
    tool: str | None = None

    @property
    def key(self) -> str:
        """What the reply is filed under within one plan."""
        return f"{self.criterion}/{'' if self.step is None else self.step}"


class JudgeCheck(Check):
    """A criterion that a judge decides. Nothing is asked where the trace lacks what the judge requires."""

    kind: Literal["judge"] = "judge"
    judge: str
    """The id of the judge."""

    def asks(
        self, case: Case, *, criterion: str, judges: Mapping[str, Judge]
    ) -> Iterable[tuple[Subject, Ask | Outcome]]:
        """One question for each step or for the trace, or why there is none."""
        judge = judges[self.judge]
        if judge.level == "trace":
            yield WHOLE, _lacking(judge, case, None) or Ask(criterion, judge)
            return
        if not case.trace.steps:
            yield WHOLE, Skipped("not_applicable", "no call was made")
        for step in case.trace.steps:
            lacking = _lacking(judge, case, step.index)
            yield case.subjects[step.index], lacking or Ask(criterion, judge, step.index, step.call.name)


def _lacking(judge: Judge, case: Case, index: int | None) -> Skipped | None:
    """Why the question cannot be asked, if it cannot."""
    gone = [part for part in judge.requires if not _captured(part, case, index)]
    return Skipped("not_captured", f"the trace has no {' and no '.join(gone)}") if gone else None


def _captured(part: Part, case: Case, index: int | None) -> bool:
    if part == "answer":
        return case.trace.answer is not None
    steps = case.trace.steps if index is None else (case.trace.steps[index],)
    if part == "arguments":
        return all(step.call.arguments is not None for step in steps)
    return any(step.result is not None for step in steps)
