"""Working through chunks: a bounded number of items at once, each recorded before its place is given to another.

So a process that dies has paid for no more than what was under way, and what was recorded is never done again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

from service.io.items import PutOff, Waiting, blocks
from service.io.recorder import Account, Recorder
from service.io.spending import Spending
from service.io.store.chunks import ChunkId, Chunks, Hold, Item, Opened, Pause, Row
from service.io.store.database import insisting

LOG = logging.getLogger("callgrade.batches")

T = TypeVar("T")

BLOCK = 50
"""Items that code works on in one go, in a thread."""

ROUNDS = 4
"""How often an item is tried whose judge fails by chance; each of them has the retries of a single call."""

WATCH = 0.5
"""Seconds between looks at whether a batch was cancelled."""

DRAIN = 1.0
"""Seconds after which a chunk that a worker gave back is up for others."""

Ended = Literal["done", "put off", "refused"]
"""What became of an opening: nothing is left of it to do, it comes up again later, or another one counts."""


Remind = Callable[[ChunkId, int], Awaitable[None]]
"""Says that a chunk of this generation is due, if it still waits."""

Owns = Callable[[], Awaitable[bool]]
"""Tells whether the work is still this process's."""

LATE = 1.0
"""Seconds that the queue has for finding out by itself."""


class Work(Protocol):
    """Scores items; what they need from outside they wait for."""

    def begin(self, items: Sequence[Item]) -> list[Row | Waiting]:
        """What code makes of items."""
        ...

    async def finish(self, waiting: Waiting, tenant: str, whole: Spending, *, last: bool) -> Row | PutOff:
        """The outcome of one that waited, or why it has none yet."""
        ...


@dataclass
class _Run:
    """One opening of a chunk while it is worked on."""

    opened: Opened
    account: Account
    refused: bool = False
    over: bool = False
    """The batch was cancelled, or has expired."""
    held: PutOff | None = None
    """What keeps all the others from being tried."""
    again: list[Waiting] = field(default_factory=list["Waiting"])
    """Items to try once more."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """Those of the items under way."""

    @property
    def stops(self) -> bool:
        return self.refused or self.over or self.held is not None

    def refuse(self) -> None:
        """Another opening counts: what is under way is paid for in vain, so it is stopped."""
        self.refused = True
        for task in self.tasks - {asyncio.current_task()}:
            task.cancel()


class _Wait(NamedTuple):
    """A chunk that was put off: since when, by the loop's clock, and what says that it is due."""

    since: float
    timer: asyncio.TimerHandle


class Runner:
    """Runs chunks in one event loop, within `in_flight` items at once."""

    def __init__(
        self,
        chunks: Chunks,
        work: Work,
        *,
        in_flight: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        remind: Remind | None = None,
    ) -> None:
        """`sleep` is how it waits before another round; `remind` is called when what was put off is due.

        The queue goes by the time of day, and that may be set back by hours.
        """
        self._chunks = chunks
        self._work = work
        self._sleep = sleep
        self._remind = remind
        self._places = asyncio.Semaphore(in_flight)
        self._recorder = Recorder(chunks, in_flight=in_flight, stopped=lambda: self._ended)
        self._thread = ThreadPoolExecutor(2, thread_name_prefix="items")
        self._running: dict[Hold, _Run] = {}
        self._watching: asyncio.Task[None] | None = None
        self._waits: dict[tuple[ChunkId, int], _Wait] = {}
        self._reminding: set[asyncio.Future[None]] = set()  # a task that nobody holds may be collected
        self._draining = False
        self._ended = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def drain(self, grace: float) -> None:
        """No further item is begun; what is under way has `grace` seconds, and the rest comes up again for whoever is there."""
        self._draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace)
        if self._watching is not None:
            self._watching.cancel()

    def close(self) -> None:
        """Gives up what the database did not take."""
        self._draining = self._ended = True
        self._recorder.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return self._idle.is_set()

    async def run(self, chunk: ChunkId, generation: int, owns: Owns) -> Ended:
        """Opens a chunk and works on it for as long as the opening counts.

        A process that was frozen before the opening may wake up when the chunk is another's: it asks `owns` before it pays.
        """
        opened = await self._stored(lambda: self._chunks.open(chunk, generation))
        if opened is None:
            return "done"
        if not await owns():
            return "refused"
        run = _Run(opened, Account(opened.spent_usd, opened.uncertain_usd, Spending(opened.cap_usd)))
        self._running[opened.hold] = run
        self._idle.clear()
        self._watching = self._watching or asyncio.create_task(self._watch())
        try:
            await self._items(run)
            return await self._left(run)
        finally:
            del self._running[opened.hold]
            if not self._running:
                self._idle.set()

    async def _items(self, run: _Run) -> None:
        await self._begin(run)
        for number in range(2, ROUNDS + 1):
            if not run.again or run.stops or self._draining:
                return
            await self._sleep(2.0 ** (number - 2))
            waiting, run.again = run.again, []
            await self._finish(run, waiting, last=number == ROUNDS)

    async def _begin(self, run: _Run) -> None:
        """Works on each block of items; those that wait run on while code works on the next."""
        async with asyncio.TaskGroup() as group:
            recording: asyncio.Task[None] | None = None  # one block is recorded while the next is worked on
            for block in blocks(run.opened.items, BLOCK):
                if run.stops or self._draining:
                    break
                begun = await self._thought(lambda block=block: self._work.begin(block))
                done = [one for one in begun if isinstance(one, Row)]
                if done:
                    await _settled(recording)
                    recording = group.create_task(self._record(run, done))
                await self._start(run, [one for one in begun if isinstance(one, Waiting)], group, last=False)

    async def _finish(self, run: _Run, waiting: Sequence[Waiting], *, last: bool) -> None:
        async with asyncio.TaskGroup() as group:
            await self._start(run, waiting, group, last=last)

    async def _start(self, run: _Run, waiting: Sequence[Waiting], group: asyncio.TaskGroup, *, last: bool) -> None:
        def done(task: asyncio.Task[None]) -> None:
            run.tasks.discard(task)
            self._places.release()

        for one in waiting:
            await self._places.acquire()
            if run.stops or self._draining:
                self._places.release()
                return
            task = group.create_task(self._one(run, one, last=last))
            run.tasks.add(task)
            task.add_done_callback(done)

    async def _one(self, run: _Run, waiting: Waiting, *, last: bool) -> None:
        found = await self._work.finish(waiting, run.opened.tenant, run.account.spending, last=last)
        if isinstance(found, Row):
            if self._waits:
                self._recovered(run.opened.hold.chunk.batch)
            await self._record(run, [found])
        elif found.all_wait:
            run.held = found if run.held is None else max(run.held, found, key=lambda put: (put.of_budget, put.delay))
        else:
            run.again.append(waiting)

    async def _record(self, run: _Run, rows: Sequence[Row]) -> None:
        if not run.refused and not await self._recorder.put(run.opened.hold, run.account, rows):
            run.refuse()

    async def _left(self, run: _Run) -> Ended:
        """What becomes of a chunk that is worked on no more."""
        hold = run.opened.hold
        if run.refused:
            return "refused"
        if run.over:
            closed = await self._stored(lambda: self._chunks.close(hold, spent=run.account.totals()))
            return "done" if closed else "refused"
        if run.held is None and not run.again and not self._draining:
            return "done"
        return await self._put_off(run, run.held)

    async def _put_off(self, run: _Run, held: PutOff | None) -> Ended:
        hold = run.opened.hold
        pause: Pause | None = None
        if held is not None:
            pause = "paused_budget" if held.of_budget else "paused_provider"
        delay, reason = (held.delay, held.reason) if held else (DRAIN, None)
        generation = await self._stored(
            lambda: self._chunks.put_off(hold, delay=delay, spent=run.account.totals(), pause=pause, reason=reason)
        )
        if generation is None:
            return "refused"
        loop, key = asyncio.get_running_loop(), (hold.chunk, generation)
        self._waits[key] = _Wait(loop.time(), loop.call_later(delay + LATE, self._due, key))
        return "put off"

    def _due(self, key: tuple[ChunkId, int]) -> None:
        """Says of a chunk that was put off that it is due."""
        self._waits.pop(key).timer.cancel()
        if self._remind is not None and not self._draining:
            task = asyncio.ensure_future(self._remind(*key))
            self._reminding.add(task)
            task.add_done_callback(self._reminding.discard)

    def _recovered(self, batch: str) -> None:
        """A judge of a batch answers: what of the batch waits for it need not wait longer. (What waits since just now may.)"""
        before = asyncio.get_running_loop().time() - LATE
        for key in [key for key, wait in self._waits.items() if key[0].batch == batch and wait.since < before]:
            self._due(key)

    async def _watch(self) -> None:
        """Marks the runs whose batches are over."""
        try:
            while self._running:
                await asyncio.sleep(WATCH)
                ending = await self._stored(lambda: self._chunks.ending({one.chunk.batch for one in self._running}))
                for hold, run in self._running.items():
                    run.over = run.over or hold.chunk.batch in ending
        finally:
            self._watching = None

    async def _stored(self, work: Callable[[], T]) -> T:
        """What the database gives, however long it is out of reach."""
        return await asyncio.to_thread(lambda: insisting(work, stopped=lambda: self._ended))

    async def _thought(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


async def _settled(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        await asyncio.wait([task])
