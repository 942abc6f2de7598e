"""Working through chunks: a bounded number of items at once, each recorded before its place is given to another.

So a process that dies has paid for no more than what was under way, and what was recorded is never done again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

from service.asking.budget.reservations import Spending
from service.asking.limits.policies import ConcurrencyLimit
from service.jobs.gate import ExclusiveGate
from service.jobs.items import Deferral, WaitingItem, build_quarantined_row, split_blocks
from service.jobs.recorder import Account, Recorder
from service.store.database import insist
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ChunkId, ChunkItem, Lease, LeasedChunk, LeasedElsewhere, OutcomeRow, Pause
from service.store.jobs.suspects import ALONE_AT, QUARANTINE_AT

LOG = logging.getLogger("callgrade.batches")

T = TypeVar("T")

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

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        """What code makes of items."""
        ...

    async def finish(self, waiting: WaitingItem, tenant: str, whole: Spending, *, last: bool) -> OutcomeRow | Deferral:
        """The outcome of one that waited, or why it has none yet."""
        ...


@dataclass
class _Attempt:
    """One opening of a chunk while it is worked on."""

    opened: LeasedChunk
    account: Account
    refused: bool = False
    over: bool = False
    """The batch was cancelled, or has expired."""
    held: Deferral | None = None
    """What keeps all the others from being tried."""
    again: list[WaitingItem] = field(default_factory=list["WaitingItem"])
    """Items to try once more."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """Those of the items under way."""
    under_way: set[int] = field(default_factory=set[int])
    """The items that were begun and have no outcome, by their positions."""

    checked: asyncio.Future[None] | None = None
    """Once the opening does not count: whether others of this process still do."""

    @property
    def stops(self) -> bool:
        return self.refused or self.over or self.held is not None or self.checked is not None

    def refuse(self) -> None:
        """Another opening counts: what is under way is paid for in vain, so it is stopped."""
        self.refused = True
        for task in self.tasks - {asyncio.current_task()}:
            task.cancel()


class _DeferredChunk(NamedTuple):
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
        threads: int = 2,
    ) -> None:
        """`sleep` is how it waits before another round; `threads`: blocks of items that are begun at once.

        `remind` is called when what was put off is due: the queue goes by the time of day, and that may be set back by hours.
        """
        self._chunks = chunks
        self._work = work
        self._sleep = sleep
        self._remind = remind
        self._places = ConcurrencyLimit(start=in_flight, most=in_flight)  # tenants take turns at them
        self._gate = ExclusiveGate()
        self._recorder = Recorder(chunks, in_flight=in_flight, stopped=lambda: self._ended)
        self._thread = ThreadPoolExecutor(threads, thread_name_prefix="items")
        self._running: dict[Lease, _Attempt] = {}
        self._watching: asyncio.Task[None] | None = None
        self._waits: dict[tuple[ChunkId, int], _DeferredChunk] = {}
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

        A process that was frozen before the opening may wake up when the chunk is another's: so it opens only what nobody
        has opened since it asked `owns`, and asks once more before it pays.
        """
        openings = await self._run_in_database(lambda: self._chunks.count_openings(chunk))
        if not await owns():
            return "refused"
        try:
            opened = await self._run_in_database(lambda: self._chunks.open(chunk, generation, openings=openings))
        except LeasedElsewhere:
            return "refused"
        if opened is None:
            return "done"
        if not await owns():
            return "refused"
        run = self._build_attempt(opened)
        trusted, suspected, given_up = sort_by_trust(opened)
        self._running[opened.hold] = run
        self._idle.clear()
        self._watching = self._watching or asyncio.create_task(self._watch())
        try:
            await self._give_up(run, given_up)
            await self._work_on_items(run, trusted)
            await self._work_alone(run, suspected)
            return await self._end_attempt(run)
        finally:
            del self._running[opened.hold]
            if not self._running:
                self._idle.set()

    def _build_attempt(self, opened: LeasedChunk) -> _Attempt:
        account = Account(opened.spent, Spending(opened.cap_usd, cap_calls=opened.cap_questions))
        run = _Attempt(opened, account)
        account.bound(lambda: self._record(run, ()))
        return run

    async def _give_up(self, run: _Attempt, items: Sequence[ChunkItem]) -> None:
        for item in items:
            told = {
                "batch": run.opened.hold.chunk.batch,
                "item": item.position,
                "deaths": run.opened.suspects.of(item.position),
            }
            LOG.error("an item took its worker down; it is quarantined", extra={"fields": told})
        if items:
            await self._record(run, [build_quarantined_row(item) for item in items])

    async def _work_alone(self, run: _Attempt, items: Sequence[ChunkItem]) -> None:
        """Works on one item after the other while nothing else goes on in this process: each may be the death of it."""
        for item in items:
            async with self._gate.enter_alone():
                if run.stops or self._draining or not await self._mark(run, [item]):
                    return
                (begun,) = await self._run_in_thread(lambda item=item: self._work.begin([item]))
                if isinstance(begun, OutcomeRow):
                    await self._record(run, [begun])
                else:
                    await self._finish_item(run, begun, last=True)
                await self._mark(run, ())

    async def _mark(self, run: _Attempt, items: Iterable[ChunkItem]) -> bool:
        """Writes down what is about to be begun; False where the opening does not count any more. Only after a death."""
        if not run.opened.suspects.deaths:
            return True
        marked = run.opened.suspects.mark_begun({*run.under_way, *[item.position for item in items]})
        if not await self._run_in_database(lambda: self._chunks.mark(run.opened.hold, marked)):
            run.refuse()
        return not run.refused

    async def _work_on_items(self, run: _Attempt, items: Sequence[ChunkItem]) -> None:
        await self._begin(run, items)
        for number in range(2, ROUNDS + 1):
            if not run.again or run.stops or self._draining:
                return
            await self._sleep(2.0 ** (number - 2))
            waiting, run.again = run.again, []
            await self._finish(run, waiting, last=number == ROUNDS)

    async def _begin(self, run: _Attempt, items: Sequence[ChunkItem]) -> None:
        """Works on each block of items; those that wait run on while code works on the next."""
        async with asyncio.TaskGroup() as group:
            recording: asyncio.Task[bool] | None = None  # one block is recorded while the next is worked on
            for block in split_blocks(items):
                async with self._gate.enter_together():
                    if run.stops or self._draining or not await self._mark(run, block):
                        break
                    begun = await self._run_in_thread(lambda block=block: self._work.begin(block))
                run.under_way |= {one.item.position for one in begun if isinstance(one, WaitingItem)}
                done = [one for one in begun if isinstance(one, OutcomeRow)]
                if done:
                    await _settle(recording)
                    recording = group.create_task(self._record(run, done))
                await self._start(run, [one for one in begun if isinstance(one, WaitingItem)], group, last=False)

    async def _finish(self, run: _Attempt, waiting: Sequence[WaitingItem], *, last: bool) -> None:
        async with asyncio.TaskGroup() as group:
            await self._start(run, waiting, group, last=last)

    async def _start(
        self, run: _Attempt, waiting: Sequence[WaitingItem], group: asyncio.TaskGroup, *, last: bool
    ) -> None:
        def release(task: asyncio.Task[None]) -> None:
            run.tasks.discard(task)
            self._places.release()

        for one in waiting:
            await self._places.acquire(run.opened.tenant)
            if run.stops or self._draining:
                self._places.release()
                return
            task = group.create_task(self._finish_together(run, one, last=last))
            run.tasks.add(task)
            task.add_done_callback(release)

    async def _finish_together(self, run: _Attempt, waiting: WaitingItem, *, last: bool) -> None:
        async with self._gate.enter_together():
            await self._finish_item(run, waiting, last=last)

    async def _finish_item(self, run: _Attempt, waiting: WaitingItem, *, last: bool) -> None:
        found = await self._work.finish(waiting, run.opened.tenant, run.account.spending, last=last)
        if isinstance(found, OutcomeRow):
            if self._waits:
                self._wake_waits(run.opened.hold.chunk.batch)
            await self._record(run, [found])
            run.under_way.discard(found.position)
        elif found.all_wait:
            run.held = found if run.held is None else max(run.held, found, key=lambda put: (put.of_budget, put.delay))
        else:
            run.again.append(waiting)

    async def _record(self, run: _Attempt, rows: Sequence[OutcomeRow]) -> bool:
        """Records rows, and what was spent; False where the opening does not count any more."""
        if not run.refused and not await self._recorder.put(run.opened.hold, run.account, rows):
            await self._refuse(run)
        return not run.refused

    async def _refuse(self, run: _Attempt) -> None:
        """Another opening counts. A process that was frozen has lost its other chunks too, which its places may not go to."""
        run.checked = run.checked or asyncio.ensure_future(self._check_others(run))
        await asyncio.shield(run.checked)
        run.refuse()

    async def _check_others(self, lost: _Attempt) -> None:
        others = [run for run in self._running.values() if run is not lost and not run.refused]
        counts = await asyncio.gather(*[self._recorder.put(run.opened.hold, run.account, ()) for run in others])
        for run in [run for run, counted in zip(others, counts, strict=True) if not counted]:
            run.refuse()

    async def _end_attempt(self, run: _Attempt) -> Ended:
        """What becomes of a chunk that is worked on no more."""
        hold = run.opened.hold
        if run.refused:
            return "refused"
        if run.over:
            closed = await self._run_in_database(lambda: self._chunks.close(hold, spent=run.account.compute_totals()))
            return "done" if closed else "refused"
        if run.held is None and not run.again and not self._draining:
            return "done"
        return await self._put_off(run, run.held)

    async def _put_off(self, run: _Attempt, held: Deferral | None) -> Ended:
        hold = run.opened.hold
        pause: Pause | None = None
        if held is not None:
            pause = "paused_budget" if held.of_budget else "paused_provider"
        delay, reason = (held.delay, held.reason) if held else (DRAIN, None)
        generation = await self._run_in_database(
            lambda: self._chunks.put_off(
                hold, delay=delay, spent=run.account.compute_totals(), pause=pause, reason=reason
            )
        )
        if generation is None:
            return "refused"
        loop, key = asyncio.get_running_loop(), (hold.chunk, generation)
        self._waits[key] = _DeferredChunk(loop.time(), loop.call_later(delay + LATE, self._remind_now, key))
        return "put off"

    def _remind_now(self, key: tuple[ChunkId, int]) -> None:
        """Says of a chunk that was put off that it is due."""
        self._waits.pop(key).timer.cancel()
        if self._remind is not None and not self._draining:
            task = asyncio.ensure_future(self._remind(*key))
            self._reminding.add(task)
            task.add_done_callback(self._reminding.discard)

    def _wake_waits(self, batch: str) -> None:
        """A judge of a batch answers: what of the batch waits for it need not wait longer. (What waits since just now may.)"""
        before = asyncio.get_running_loop().time() - LATE
        for key in [key for key, wait in self._waits.items() if key[0].batch == batch and wait.since < before]:
            self._remind_now(key)

    async def _watch(self) -> None:
        """Marks the runs whose batches are over."""
        try:
            while self._running:
                await asyncio.sleep(WATCH)
                ending = await self._run_in_database(
                    lambda: self._chunks.ending({one.chunk.batch for one in self._running})
                )
                for hold, run in self._running.items():
                    run.over = run.over or hold.chunk.batch in ending
        finally:
            self._watching = None

    async def _run_in_database(self, work: Callable[[], T]) -> T:
        """What the database gives, however long it is out of reach."""
        return await asyncio.to_thread(lambda: insist(work, stopped=lambda: self._ended))

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def sort_by_trust(opened: LeasedChunk) -> tuple[list[ChunkItem], list[ChunkItem], list[ChunkItem]]:
    """The items that may be worked on together, those that must be alone, and those that are not tried any more."""
    trusted, suspected, given_up = list[ChunkItem](), list[ChunkItem](), list[ChunkItem]()
    for item in opened.items:
        deaths = opened.suspects.of(item.position)
        (given_up if deaths >= QUARANTINE_AT else suspected if deaths >= ALONE_AT else trusted).append(item)
    suspected.sort(
        key=lambda item: -opened.suspects.of(item.position)
    )  # a guilty one is known soonest, an innocent one freed
    return trusted, suspected, given_up


async def _settle(task: asyncio.Task[bool] | None) -> None:
    if task is not None:
        await asyncio.wait([task])
