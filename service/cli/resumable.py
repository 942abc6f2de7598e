"""Scoring large files so that it can be stopped at any time: a batch of its own, worked on in this process.

What has been scored lies in a store on disk. The same command started again goes on from there, and when all is done the
results are read back in the order of the records.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import typer
from pydantic import TypeAdapter
from pydantic_core import to_json

from service.cli.batch_progress import Progression
from service.cli.console import plural, say, warn
from service.cli.exits import NO_JUDGE
from service.cli.inputs import Asked, Inputs, Refused
from service.cli.results import Graded, Result, grade_later
from service.cli.runfiles import fingerprint, forget, forget_old, held, runs_folder
from service.cli.worker import chunks_at_once
from service.core.report import Report
from service.errors import NOBODY_THERE, BusyError, InputError, SettingsError
from service.io import batches
from service.io.chunking import Cutter
from service.io.items import Items, wrapped
from service.io.notices import Notices
from service.io.runner import Runner
from service.io.settings import Settings
from service.io.store.batch import Batch
from service.io.store.batches import Batches, Submission
from service.io.store.chunks import Chunks
from service.io.store.database import insisting, open_database
from service.io.store.results import result_pages, window
from service.io.traces import records
from service.io.worker import Worker, working

LARGE = 1_000
"""Records from which on a judged run can be taken up again unless it is told otherwise."""

POLL = 0.2
"""Seconds between looks at how far the run is."""

GIVE_UP = 600.0
"""Seconds without any outcome after which a run that waits for its provider is stopped."""

FOREVER = 8_760.0 * 100
"""Hours until a run would expire."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the results: the report of the record at a position, from 0, among those that can be read."""

    index: int
    report: Report


LINE: TypeAdapter[Line] = TypeAdapter(Line)


def is_resumed(inputs: Inputs, wanted: bool | None) -> bool:  # noqa: FBT001 (None: as it is fitting)
    """Whether a run goes through a store. A usage error where that is wanted and cannot be."""
    again = all(str(file) != "-" and file.is_file() and os.access(file, os.R_OK) for file in inputs.files)
    if wanted and not again:
        raise typer.BadParameter("only files can be read once more, and so be resumed", param_hint="--resumable")
    if wanted is not None or not again:
        return bool(wanted)
    judged = inputs.engine.judging is not None and inputs.judges != "off"
    return judged and _is_large(inputs) and _has_folder(inputs.settings)


def _is_large(inputs: Inputs) -> bool:
    found = (record for file in inputs.files for record in records(file, limits=inputs.limits))
    return next(islice(found, LARGE - 1, None), None) is not None


def _has_folder(settings: Settings) -> bool:
    try:
        return os.access(runs_folder(settings), os.W_OK)
    except OSError as error:
        warn(f"this run cannot be taken up again, for {error.filename} cannot be written: {error.strerror}")
        return False


@contextmanager
def resumed(inputs: Inputs) -> Generator[Iterator[Result]]:
    """The result of every record, in order, once all are there. At the end of the block the store of the run is removed."""
    folder = runs_folder(inputs.settings)
    forget_old(folder, days=inputs.settings.batch_days)
    name = fingerprint(inputs)
    with held(folder, name) as store:
        logging.getLogger().addHandler(logging.NullHandler())  # else what is not configured goes to standard error
        with _Run(inputs, store, name) as run:
            run.work()
            yield run.results()
        forget(store)


class _Run:
    """One run over its store, in one event loop."""

    def __init__(self, inputs: Inputs, store: Path, name: str) -> None:
        self._inputs = inputs
        self._name = name
        self._database = open_database(f"sqlite:///{store}")
        self._queue = batches.Enqueuer(self._database)
        self._kept = Batches(self._database, self._queue)
        self._loop = asyncio.Runner()
        self._batch: Batch | None = None

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._inputs.engine.close())
        self._loop.close()
        self._database.close()

    def work(self) -> None:
        """Scores what is not scored yet. KeyboardInterrupt where somebody stops it, BusyError where nothing goes on."""
        insisting(self._database.migrate)
        batches.prepare(self._database)
        self._batch = self._begun()
        if self._batch is None or self._batch.ended:
            return
        try:
            self._loop.run(self._worked())
        except KeyboardInterrupt:
            say(f"stopped: {_so_far(self._found())}; the same command goes on from there")
            raise
        if fingerprint(self._inputs) != self._name:
            raise InputError.at("", "a file has changed while it was scored")

    def results(self) -> Iterator[Result]:
        """What became of every record, read back one after the other."""
        lines = self._lines()
        line = next(lines, None)
        position = 0
        for number, record in enumerate(self._inputs, start=1):
            if isinstance(record, Refused):
                yield record
                continue
            if line is not None and line.index == position:
                yield Graded(number, record.place, record, line.report)
                line = next(lines, None)
            else:  # why it has no report is found out as a run without a store does; no judge had said anything
                yield self._loop.run(grade_later(number, record, self._inputs))
            position += 1

    def _begun(self) -> Batch | None:
        """The batch of the run; None where no record can be read."""
        earlier = self._kept.submitted("", self._name, self._name)
        if earlier is not None:
            say(f"going on: {_so_far(earlier)} already")
            # What stood in the way then may be mended: nothing waits for the end of that pause.
            return self._kept.resume("", earlier.id) if earlier.status == "paused_provider" else earlier
        uncounted = replace(self._inputs, guessed=Counter())
        with Cutter(size=self._inputs.settings.batch_chunk) as cutter:
            for record in uncounted:
                if isinstance(record, Asked):
                    cutter.add(to_json({"custom_id": str(record.place), "request": record.body}))
            cutter.finish()
            if not cutter.total:
                return None
            submission = Submission(tenant="", fingerprint=self._name, key=self._name, hours=FOREVER)
            say(f"{plural(cutter.total, 'record')} to score; if this is stopped, the same command goes on from there")
            return self._kept.submit(submission, cutter)

    async def _worked(self) -> None:
        settings, engine = self._inputs.settings, self._inputs.engine
        items = Items(engine, wrapped(self._inputs.limits), read=self._inputs.request_of)
        chunks = Chunks(self._database, self._queue)
        runner = Runner(chunks, items, in_flight=settings.batch_in_flight, remind=batches.remind)
        worker = Worker(self._database, self._queue, runner, Notices(self._kept, None))
        with Progression("scoring") as progression:
            async with working(
                self._database,
                runner,
                worker,
                chunks=chunks_at_once(settings),
                sweep=lambda: None,
                grace=settings.graceful_seconds,
            ):
                await self._ended(progression.show)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())  # the engine's own has ended with it

    async def _ended(self, show: Callable[[Batch], None]) -> None:
        now = asyncio.get_running_loop().time
        done, since = -1, now()
        while not (batch := await asyncio.to_thread(self._found)).ended:
            show(batch)
            counts = batch.request_counts
            if counts.completed + counts.failed != done or batch.status != "paused_provider":
                done, since = counts.completed + counts.failed, now()
            cause = (batch.reason or "").partition(":")[0]
            if batch.status == "paused_provider" and cause in NOBODY_THERE:
                model = self._inputs.settings.judge_model
                message = (
                    f"the judge {model} does not answer: {NO_JUDGE[cause]}; {_so_far(batch)}, the same command goes on"
                )
                raise SettingsError.at("CALLGRADE_JUDGE_MODEL", message)
            if now() - since > GIVE_UP:
                told = f"nothing came of judges for {GIVE_UP / 60:.0f} minutes: {batch.reason}"
                raise BusyError(
                    f"{told}; the same command goes on ({_so_far(batch)}), --no-resumable reports without them"
                )
            await asyncio.sleep(POLL)
        show(batch)

    def _found(self) -> Batch:
        batch = self._batch
        assert batch is not None  # noqa: S101 (nothing is worked on else)
        return insisting(lambda: self._kept.find("", batch.id))

    def _lines(self) -> Iterator[Line]:
        if self._batch is None:
            return
        batch = self._found()
        for page in result_pages(self._database, batch, window(self._database, batch)):
            for line in page.splitlines():
                yield LINE.validate_json(line)


def _so_far(batch: Batch) -> str:
    counts = batch.request_counts
    return f"{counts.completed + counts.failed} of {counts.total} scored"
