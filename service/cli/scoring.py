"""Scoring a run of records: a report or a refusal for each, in order, several of those that wait for judges at once."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import current_thread, main_thread
from time import perf_counter

from service.cli.inputs import InputChoices, Inputs, Refusal
from service.cli.interrupts import wake_by_signals
from service.core.report import Report
from service.engine import Engine
from service.errors import InputError
from service.reading.trace_files import RecordPlace
from service.reporting.comparison import TRIAL
from service.reporting.summary.repeats import TASK


@dataclass(frozen=True, slots=True)
class ScoredRecord:
    """A record that was scored; `number` is its position in the run, from 1, `seconds` what scoring it took."""

    number: int
    place: RecordPlace
    request: InputChoices
    report: Report
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """What the trace is called: as the line of a batch says, else its id, else its number."""
        return self.request.name or self.report.trace_id or f"#{self.number}"

    @property
    def trial(self) -> str | None:
        """Which of several runs of one case it is."""
        return self.report.tags.get(TRIAL)


Result = ScoredRecord | Refusal

TOGETHER = 64
"""How many records that somebody must be waited for are worked on at once."""


def score_records(inputs: Inputs, *, repeats: int = 1) -> Iterator[Result]:
    """The result of every record, in order, each `repeats` times: tagged `trial` from 1 on, and `task` by its name.

    A result comes as soon as it and those before it are there.
    """
    waiting: deque[Result | asyncio.Task[Result]] = deque()
    # One loop for all: connections to judges and to their cache belong to it.
    with asyncio.Runner() as loop, wake_by_signals(loop.get_loop()):
        for number, asked in enumerate(_repeat(inputs, repeats), start=1):
            waiting.append(_begin(number, asked, inputs, loop))
            while waiting and (len(waiting) >= TOGETHER or not isinstance(waiting[0], asyncio.Task)):
                yield _wait(waiting.popleft(), loop)
        while waiting:
            yield _wait(waiting.popleft(), loop)
        loop.run(inputs.engine.close())


def _repeat(records: Iterable[InputChoices | Refusal], repeats: int) -> Iterator[InputChoices | Refusal]:
    for number, record in enumerate(records, start=1):
        if repeats == 1 or isinstance(record, Refusal):
            yield record
            continue
        yield from (_mark_trial(record, number, n) for n in range(repeats))


def _mark_trial(record: InputChoices, number: int, repeat: int) -> InputChoices:
    trace = record.body.get("trace")
    name = record.name or str((isinstance(trace, dict) and trace.get("id")) or f"#{number}")
    tags = {TASK: name, **record.request.tags, TRIAL: str(repeat + 1)}
    return replace(record, request=record.request.model_copy(update={"tags": tags}), repeat=repeat)


def _begin(
    number: int, asked: InputChoices | Refusal, inputs: Inputs, loop: asyncio.Runner
) -> Result | asyncio.Task[Result]:
    if isinstance(asked, Refusal) or not _waits(asked, inputs.engine):
        return _grade(number, asked, inputs)
    return loop.get_loop().create_task(_grade_later(number, asked, inputs))


def _wait(result: Result | asyncio.Task[Result], loop: asyncio.Runner) -> Result:
    if not isinstance(result, asyncio.Task):
        return result
    with _hold_interrupts(result, loop.get_loop()):
        return loop.get_loop().run_until_complete(result)


@contextmanager
def _hold_interrupts(task: asyncio.Task[Result], loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Ctrl-C cancels the task and is raised here, once the loop has stopped.

    Raised where it finds the loop, it could end a task that nobody waits for, or leave an order to stop in the loop that
    ends the closing of it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or current_thread() is not main_thread():
        yield
        return
    interrupted = False

    def cancel(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupted:
            raise KeyboardInterrupt


def _waits(record: InputChoices, engine: Engine) -> bool:
    try:
        return engine.must_wait(record.request)
    except InputError:
        return False  # told where it is scored


async def _grade_later(position: int, asked: InputChoices, inputs: Inputs) -> Result:
    with _note_place(asked):
        start = perf_counter()
        try:
            report = await inputs.engine.answer_async(asked.request, repeat=asked.repeat)
        except InputError as error:
            return asked.refuse(error)
        return ScoredRecord(position, asked.place, asked, report, perf_counter() - start)


def _grade(position: int, asked: InputChoices | Refusal, inputs: Inputs) -> Result:
    if isinstance(asked, Refusal):
        return asked
    with _note_place(asked):
        start = perf_counter()
        try:
            report = inputs.engine.answer(asked.request)
        except InputError as error:
            return asked.refuse(error)
        return ScoredRecord(position, asked.place, asked, report, perf_counter() - start)


@contextmanager
def _note_place(asked: InputChoices) -> Generator[None]:
    """Says of an error of ours at which record it came."""
    try:
        yield
    except Exception as error:
        error.add_note(f"at {asked.place}{asked.place.pointer}")
        raise
