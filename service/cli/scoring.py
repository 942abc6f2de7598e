"""Score a run of records: a report or a refusal for each, in order. Records that wait for judges overlap."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter

from service.cli.inputs import Inputs, RecordRequest, Refusal
from service.core.report import Report
from service.errors import InputError
from service.reading.places import RecordPlace
from service.reporting.comparison import TRIAL


@dataclass(frozen=True, slots=True)
class ScoredRecord:
    """A scored record; `number` is its position in the run, from 1, and `seconds` the time that scoring took."""

    number: int
    request: RecordRequest
    report: Report
    seconds: float = 0.0

    @property
    def place(self) -> RecordPlace:
        """Where the record is."""
        return self.request.place

    @property
    def name(self) -> str:
        """The trace's name: the `custom_id` of a batch line, else the trace id, else the record's number."""
        return self.request.name or self.report.trace_id or f"#{self.number}"

    @property
    def trial(self) -> str | None:
        """Which of several runs of one case this is."""
        return self.report.tags.get(TRIAL)


Result = ScoredRecord | Refusal

MAX_IN_FLIGHT = 64
"""How many records wait for judges at once."""


def score_records(inputs: Inputs) -> Iterator[Result]:
    """Yield the result of every record, in order, as soon as it and all before it are ready."""
    with asyncio.Runner() as loop:
        yield from score_in_loop(inputs, inputs, loop)
        loop.run(inputs.engine.close())


def score_in_loop(records: Iterable[RecordRequest | Refusal], inputs: Inputs, loop: asyncio.Runner) -> Iterator[Result]:
    """Likewise for any records, in one loop for a whole run: connections to judges and to the cache belong to it."""
    waiting: deque[Result | asyncio.Task[Result]] = deque()
    try:
        for number, record in enumerate(records, start=1):
            waiting.append(_start(number, record, inputs, loop))
            while waiting and (len(waiting) >= MAX_IN_FLIGHT or not isinstance(waiting[0], asyncio.Task)):
                yield _wait(waiting.popleft(), loop)
        while waiting:
            yield _wait(waiting.popleft(), loop)
    finally:
        if inputs.engine.judging is not None:
            loop.run(inputs.engine.flush())


def _start(
    number: int, record: RecordRequest | Refusal, inputs: Inputs, loop: asyncio.Runner
) -> Result | asyncio.Task[Result]:
    if isinstance(record, Refusal):
        return record
    with suppress(InputError):  # scoring reports the error
        if inputs.engine.must_wait(record.request):
            return loop.get_loop().create_task(_score_later(number, record, inputs))
    return _score(number, record, inputs)


def _wait(result: Result | asyncio.Task[Result], loop: asyncio.Runner) -> Result:
    """Wait for a result. Ctrl-C cancels its task and is raised once the loop has stopped: inside it, it could end any task."""
    if not isinstance(result, asyncio.Task):
        return result
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        loop.get_loop().call_soon_threadsafe(result.cancel)

    with _handle_interrupts(interrupt):
        try:
            return loop.run(_finish(result))
        finally:
            if interrupted:
                raise KeyboardInterrupt


@contextmanager
def _handle_interrupts(handler: Callable[..., None]) -> Generator[None]:
    """Handle Ctrl-C where Python would raise it: in the main thread, unless the caller handles or ignores it."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _finish(task: asyncio.Task[Result]) -> Result:
    return await task


async def _score_later(number: int, record: RecordRequest, inputs: Inputs) -> Result:
    start = perf_counter()
    with _note_place(record):
        try:
            report = await inputs.engine.answer_async(record.request)
        except InputError as error:
            return record.refuse(error)
    return ScoredRecord(number, record, report, perf_counter() - start)


def _score(number: int, record: RecordRequest, inputs: Inputs) -> Result:
    start = perf_counter()
    with _note_place(record):
        try:
            report = inputs.engine.answer(record.request)
        except InputError as error:
            return record.refuse(error)
    return ScoredRecord(number, record, report, perf_counter() - start)


@contextmanager
def _note_place(record: RecordRequest) -> Generator[None]:
    """Add the record's place to any unexpected error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"at {record.place}{record.place.pointer}")
        raise
