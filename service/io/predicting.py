"""Judging labelled items, so that the judge can be fitted to the labels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from service.calibrating.labels import LabelledItem
from service.calibrating.predictions import Prediction, Said
from service.core.conclude import conclude
from service.core.judged import Judged
from service.core.judges import JudgeCheck
from service.core.outcome import Errored, Skipped
from service.core.questions import ASSEMBLY
from service.core.report import JudgeMode, Report, Told
from service.core.rubric import Criterion, Rubric
from service.core.withheld import Withheld
from service.errors import NOBODY_THERE, InputError, Problem
from service.io.engine import Engine
from service.io.judging import Judging
from service.request import read_request

TOGETHER = 64
"""Items that are judged at once."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What judges are asked, and how often."""

    rubric: Rubric
    mode: JudgeMode = "live"
    repeats: int = 1
    """How many answers each item is to have. One that the cache has is not asked for, unless the mode is fresh."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """An item that no judge gave an answer for."""

    said: Said
    reason: str
    nobody: str | None = None
    """The cause, where no question has to do with it: then it is so of all the others."""

    def __str__(self) -> str:
        return f"{self.said.id}: {self.reason}"


async def predictions_of(
    engine: Engine, items: Iterable[LabelledItem], asking: Asking, *, done: Collection[Said] = ()
) -> AsyncIterator[Prediction | Unanswered]:
    """What the rubric's judges say of the items, each as soon as it is there; all first answers are asked for first.

    What is `done` is not asked. Of several questions about one item the lowest value counts. InputError, before anybody is
    asked, for a criterion that no judge of the rubric decides, for a trace that cannot be read, and without a judge.
    """
    judging = engine.judging
    if judging is None:
        raise InputError.at("/judges", "no judge model is set (CALLGRADE_JUDGE_MODEL)")
    listed = list(items)
    await asyncio.to_thread(_check, listed, asking)
    running: set[asyncio.Task[Prediction | Unanswered]] = set()
    try:
        for item, said in _wanted(listed, asking.repeats, done):
            running.add(asyncio.create_task(_asked(engine, judging, item, said, asking)))
            if len(running) >= TOGETHER:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    yield task.result()
        for task in asyncio.as_completed(running):
            yield await task
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def judged_by(rubric: Rubric, criterion: str) -> Criterion:
    """The criterion of that id, which a judge decides; InputError where there is none."""
    for one in rubric.criteria:
        if one.id == criterion and isinstance(one.check, JudgeCheck):
            return one
    known = [one.id for one in rubric.criteria if isinstance(one.check, JudgeCheck)]
    raise InputError.at(
        "/criterion", f"no judge of {rubric.id} decides {criterion!r}; known: {', '.join(known) or 'none'}"
    )


def judge_of(rubric: Rubric, criterion: str) -> str:
    """The id of the judge that decides a criterion; InputError where none does."""
    check = judged_by(rubric, criterion).check
    return check.judge if isinstance(check, JudgeCheck) else ""


def _wanted(items: Iterable[LabelledItem], repeats: int, done: Collection[Said]) -> Iterator[tuple[LabelledItem, Said]]:
    listed = list(items)
    for sample in range(repeats):
        for item in listed:
            said = Said(*item.key, sample)
            if said not in done:
                yield item, said


def _check(items: Iterable[LabelledItem], asking: Asking) -> None:
    for item in items:
        try:
            read_request(request_of(item, asking))
        except InputError as error:
            raise InputError([Problem(f"{item.id}: {p.path}", p.message) for p in error.problems]) from None


async def _asked(
    engine: Engine, judging: Judging, item: LabelledItem, said: Said, asking: Asking
) -> Prediction | Unanswered:
    plan = await asyncio.to_thread(lambda: engine.plan(read_request(request_of(item, asking))))
    votes = await judging.answer(
        plan.asks, plan.trace, mode=asking.mode, spending=judging.purse(None), repeat=said.sample
    )
    return prediction_of(said, conclude(plan, votes, mode=asking.mode), asking.rubric)


def request_of(item: LabelledItem, asking: Asking) -> JsonValue:
    """A request that asks the judge alone: what code would decide in its place must not hide what it says."""
    criterion, judge = judged_by(asking.rubric, item.criterion), judge_of(asking.rubric, item.criterion)
    check: JsonValue = {"kind": "judge", "judge": judge}
    alone: JsonValue = {
        "id": "calibration",
        "criteria": [{"id": item.criterion, "stage": criterion.stage, "check": check}],
        "judges": [asking.rubric.known_judges[judge].model_dump(mode="json")],
    }
    return {"rubric": alone, "trace": _trace(item), "judges": asking.mode}


def _trace(item: LabelledItem) -> JsonValue:
    if item.trace is not None:
        return item.trace
    events: JsonValue = [
        {"call": {"name": "tool", "arguments": {}}, "result": item.payload},
        {"assistant": item.answer or ""},
    ]
    return {"format": "callgrade", "id": item.id, "events": events}


def prediction_of(said: Said, report: Report, rubric: Rubric) -> Prediction | Unanswered:
    """What the judges of a rubric said of an item, by the report on it: of several questions, the lowest value."""
    judged = judged_of(report, said.criterion)
    if not judged:
        outcomes = outcomes_in(report, said.criterion)
        reasons = [outcome.reason for outcome in outcomes if isinstance(outcome, Skipped | Errored)]
        causes = [
            outcome.cause for outcome in outcomes if isinstance(outcome, Errored) and outcome.cause in NOBODY_THERE
        ]
        return Unanswered(said, reasons[0] if reasons else "the judge was not asked", next(iter(causes), None))
    return predicted_by(said, min(judged, key=lambda outcome: outcome.raw), rubric)


def judged_of(report: Report, criterion: str) -> list[Judged | Withheld]:
    """What judges said in a report of one criterion, whether it counts there or not."""
    return [outcome for outcome in outcomes_in(report, criterion) if isinstance(outcome, Judged | Withheld)]


def outcomes_in(report: Report, criterion: str) -> list[Told]:
    """The outcomes of one criterion in a report."""
    loose = [each.outcome for one in report.criteria if one.id == criterion for each in one.outcomes]
    return [*loose, *[step.outcomes[criterion] for step in report.steps if criterion in step.outcomes]]


def predicted_by(said: Said, outcome: Judged | Withheld, rubric: Rubric) -> Prediction:
    """A judge's outcome as a prediction. Of a jury, `model` is all of its models, as fits are bound to them."""
    judge = rubric.known_judges[outcome.judge.id]
    models = dict.fromkeys([vote.model for vote in outcome.judge.votes]) or [outcome.judge.model]
    return Prediction(
        id=said.id,
        criterion=said.criterion,
        raw=outcome.raw,
        judge=judge.id,
        judge_digest=judge.digest,
        model="+".join(models),
        assembly=ASSEMBLY,
        sample=said.sample,
        reason=outcome.judge.reason,
    )
