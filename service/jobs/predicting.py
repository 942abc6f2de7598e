"""Judging labelled items, so that the judge can be fitted to the labels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from service.asking.budget.reservations import Spending
from service.asking.judging import Judging
from service.calibration.labels import LabelledItem
from service.calibration.predictions import AnswerId, Prediction
from service.calibration.report_predictions import UnansweredItem, find_criterion, find_judge, read_prediction
from service.core.conclusion.conclude import conclude
from service.core.report import JudgeMode
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import InputError, Problem
from service.request import read_request, read_request_trace

TOGETHER = 64
"""Items that are judged at once."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What judges are asked, and how often."""

    rubric: Rubric
    mode: JudgeMode = "live"
    repeats: int = 1
    """How many answers each item is to have. One that the cache has is not asked for, unless the mode is fresh."""


async def collect_predictions(
    engine: Engine, items: Iterable[LabelledItem], asking: Asking, *, done: Collection[AnswerId] = ()
) -> AsyncIterator[Prediction | UnansweredItem]:
    """What the rubric's judges say of the items, each as soon as it is there; all first answers are asked for first.

    What is `done` is not asked. Of several questions about one item the lowest value counts. InputError, before anybody is
    asked, for a criterion that no judge of the rubric decides, for a trace that cannot be read, and without a judge.
    """
    judging = engine.judging
    if judging is None:
        raise InputError.at("/judges", "no judge model is set (CALLGRADE_JUDGE_MODEL)")
    listed = list(items)
    await asyncio.to_thread(_check, listed, asking)
    running: set[asyncio.Task[Prediction | UnansweredItem]] = set()
    try:
        for item, said in _list_wanted(listed, asking.repeats, done):
            running.add(asyncio.create_task(_ask(engine, judging, item, said, asking)))
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


def _list_wanted(
    items: Iterable[LabelledItem], repeats: int, done: Collection[AnswerId]
) -> Iterator[tuple[LabelledItem, AnswerId]]:
    listed = list(items)
    for sample in range(repeats):
        for item in listed:
            said = AnswerId(*item.key, sample)
            if said not in done:
                yield item, said


def _check(items: Iterable[LabelledItem], asking: Asking) -> None:
    for item in items:
        try:
            read_request_trace(read_request(build_request(item, asking)))
        except InputError as error:
            raise InputError([Problem(f"{item.id}: {p.path}", p.message) for p in error.problems]) from None


async def _ask(
    engine: Engine, judging: Judging, item: LabelledItem, said: AnswerId, asking: Asking
) -> Prediction | UnansweredItem:
    plan = await asyncio.to_thread(lambda: engine.plan(read_request(build_request(item, asking))))
    last = bool(item.run)
    asks = [ask for ask in plan.asks if not last or ask.step == len(plan.trace.steps) - 1]
    votes = await judging.answer(asks, plan.trace, mode=asking.mode, spending=Spending(), repeat=said.sample)
    return read_prediction(said, conclude(plan, votes, mode=asking.mode), asking.rubric, last=last)


def build_request(item: LabelledItem, asking: Asking) -> JsonValue:
    """A request with this criterion alone, as scoring has it: code looks first, and what it finds is shown to the judge."""
    criterion, judge = find_criterion(asking.rubric, item.criterion), find_judge(asking.rubric, item.criterion)
    check: JsonValue = criterion.check.model_dump(mode="json", exclude={"unless", "then", "guarantee"})
    alone: JsonValue = {
        "id": "calibration",
        "criteria": [{"id": item.criterion, "stage": criterion.stage, "check": check}],
        "judges": [asking.rubric.judges_by_id[judge].model_dump(mode="json")],
    }
    return {"rubric": alone, "trace": _build_trace(item), "judges": asking.mode}


def _build_trace(item: LabelledItem) -> JsonValue:
    if item.trace is not None:
        return item.trace
    events: JsonValue = [
        {"call": {"name": "tool", "arguments": {}}, "result": item.payload},
        {"assistant": item.answer or ""},
    ]
    return {"format": "callgrade", "id": item.id, "events": events}
