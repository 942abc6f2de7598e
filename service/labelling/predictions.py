"""Ask judges about labelled items, so that each judge can be fitted to the labels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue

from service.asking.budget.reservations import Spending
from service.asking.judging import Judging
from service.calibration.labels import LabelledItem
from service.calibration.predictions import AnswerId, Prediction
from service.calibration.report_predictions import UnansweredItem, find_check, find_criterion, read_prediction
from service.core.conclusion.conclude import conclude
from service.core.report import JudgeMode
from service.core.rubric import Rubric
from service.core.trace import Trace
from service.engine import Engine
from service.errors import NO_JUDGE_MODEL, InputError, Problem
from service.reading.request import read_request, read_request_trace

MAX_CONCURRENT_ITEMS = 64
"""Items that are judged at once."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """What judges are asked, and how often."""

    rubric: Rubric
    mode: JudgeMode = "live"
    repeats: int = 1
    """How many answers to get for each item. Cached answers are not asked for again, unless the mode is fresh."""
    only: Collection[str] = ()
    """The ids of the judges to ask; empty: all."""

    def list_questions(self, items: Sequence[LabelledItem]) -> list[ItemQuestion]:
        """List the questions, all first answers first. Raises InputError for a criterion that no judge decides."""
        judges = {name: find_check(self.rubric, name).judge for name in {item.criterion: None for item in items}}
        return [
            ItemQuestion(item, AnswerId(*item.key, sample, judges[item.criterion]))
            for sample in range(self.repeats)
            for item in items
            if not self.only or judges[item.criterion] in self.only
        ]


class ItemQuestion(NamedTuple):
    """An item, and which answer to get from which judge."""

    item: LabelledItem
    answer_id: AnswerId


async def collect_predictions(
    engine: Engine, items: Iterable[LabelledItem], settings: AskSettings
) -> AsyncIterator[Prediction | UnansweredItem]:
    """Ask the rubric's judges about the items, and yield each answer as it arrives; all first answers are asked for first.

    Raises InputError, before anybody is asked, for a criterion that no judge of the rubric decides, for
    a trace that cannot be read, and where no judge is set up.
    """
    judging = engine.judging
    if judging is None:
        raise InputError.at("/judges", NO_JUDGE_MODEL)
    listed = list(items)
    await asyncio.to_thread(_check, listed, settings)
    questions = settings.list_questions(listed)
    running: set[asyncio.Task[Prediction | UnansweredItem]] = set()
    try:
        for one in questions:
            running.add(asyncio.create_task(_ask(engine, judging, one, settings)))
            if len(running) >= MAX_CONCURRENT_ITEMS:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    yield task.result()
        for task in asyncio.as_completed(running):
            yield await task
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _check(items: Iterable[LabelledItem], settings: AskSettings) -> None:
    for item in items:
        try:
            check_item(item, settings)
        except InputError as error:
            raise InputError([Problem(f"{item.id}: {p.path}", p.message) for p in error.problems]) from None


def check_item(item: LabelledItem, settings: AskSettings) -> None:
    """Raise InputError for an item that no judge can be asked about."""
    for one in replace(settings, repeats=1).list_questions([item]):
        read_request_trace(read_request(build_request(one, settings)))


async def _ask(
    engine: Engine, judging: Judging, one: ItemQuestion, settings: AskSettings
) -> Prediction | UnansweredItem:
    plan = await asyncio.to_thread(lambda: engine.plan(read_request(build_request(one, settings))))
    steps = find_own_steps(one.item, plan.trace)
    asks = [ask for ask in plan.asks if steps is None or ask.step is None or ask.step in steps]
    votes = await judging.answer(asks, plan.trace, mode=settings.mode, spending=Spending(), repeat=one.answer_id.sample)
    return read_prediction(one.answer_id, conclude(plan, votes, mode=settings.mode), settings.rubric, steps=steps)


def find_own_steps(item: LabelledItem, trace: Trace) -> frozenset[int] | None:
    """Return the indexes of an item's calls; of a step in a run, those of its last message. None: the whole trace."""
    last = len(trace.messages) - 1
    return frozenset([step.index for step in trace.steps if step.message == last]) if item.run else None


def build_request(one: ItemQuestion, settings: AskSettings) -> JsonValue:
    """Build a request with this criterion alone, as in scoring: code looks first, and the judge is shown what it finds."""
    criterion = find_criterion(settings.rubric, one.item.criterion)
    check = criterion.check.model_dump(mode="json", exclude={"unless", "guarantee"})
    alone: JsonValue = {
        "id": "calibration",
        "criteria": [{"id": criterion.id, "stage": criterion.stage, "check": check}],
        "judges": [settings.rubric.judges_by_id[one.answer_id.judge].model_dump(mode="json")],
    }
    return {"rubric": alone, "trace": _build_trace(one.item), "judges": settings.mode}


def _build_trace(item: LabelledItem) -> JsonValue:
    if item.trace is not None:
        return item.trace
    events: JsonValue = [
        {"call": {"name": "tool", "arguments": {}}, "result": item.payload},
        {"assistant": item.answer or ""},
    ]
    return {"format": "callgrade", "id": item.id, "events": events}
