"""Run the items of a chunk: a bounded number at a time, each recorded before the next takes its place.

So a process that dies has paid for no more than what was under way, and nothing that was recorded runs again.
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
from service.store.jobs.suspects import ALONE_DEATHS, QUARANTINE_DEATHS

LOG = logging.getLogger("callgrade.batches")

T = TypeVar("T")

MAX_ROUNDS = 4
"""Rounds in which an item is tried while its judge fails by chance; each round has the retries of a single call."""

CANCEL_POLL_S = 0.5
"""Seconds between checks whether a batch was cancelled."""

GIVEN_BACK_DELAY_S = 1.0
"""Seconds until a chunk that a worker gave back is offered to others."""

AttemptEnd = Literal["done", "put off", "refused"]
"""How an attempt at a chunk ended: "done", "put off" (it comes up again), or "refused" (another attempt owns it)."""


Reminder = Callable[[ChunkId, int], Awaitable[None]]
"""Tells the queue that this generation of a chunk is due, if it is still waiting."""

OwnerCheck = Callable[[], Awaitable[bool]]
"""Returns whether the work still belongs to this process."""

REMINDER_LAG_S = 1.0
"""Seconds that the queue has to notice by itself that a chunk is due."""


class Work(Protocol):
    """Scores items, and awaits what they need from outside."""

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        """Run the part that code decides alone: return outcomes, or items that must wait."""
        ...

    async def finish(
        self, waiting: WaitingItem, tenant: str, chunk_spending: Spending, *, last: bool
    ) -> OutcomeRow | Deferral:
        """Return the outcome of an item that waited, or why it has none yet."""
        ...


@dataclass
class _Attempt:
    """One attempt at a leased chunk while it runs."""

    leased_chunk: LeasedChunk
    account: Account
    superseded: bool = False
    batch_over: bool = False
    """Whether the batch was cancelled or has expired."""
    deferral: Deferral | None = None
    """Why no other item of the chunk should be tried now."""
    retries: list[WaitingItem] = field(default_factory=list["WaitingItem"])
    """Items to try again."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """The tasks of the items under way."""
    under_way: set[int] = field(default_factory=set[int])
    """Positions of the items that were begun and have no outcome."""

    others_check: asyncio.Future[None] | None = None
    """Once this attempt is superseded: the check whether the process's other attempts still count."""

    @property
    def stops(self) -> bool:
        return self.superseded or self.batch_over or self.deferral is not None or self.others_check is not None

    def supersede(self) -> None:
        """Stop: another attempt counts now, so what is under way would be paid for in vain."""
        self.superseded = True
        for task in self.tasks - {asyncio.current_task()}:
            task.cancel()


class _DeferredChunk(NamedTuple):
    """A deferred chunk: since when, on the loop's clock, and the timer that reports it due."""

    since: float
    timer: asyncio.TimerHandle


class Runner:
    """Runs chunks in one event loop, at most `in_flight` items at a time."""

    def __init__(
        self,
        chunks: Chunks,
        work: Work,
        *,
        in_flight: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        remind: Reminder | None = None,
        threads: int = 2,
    ) -> None:
        """`sleep` waits before another round; `threads`: how many blocks of items code works on at a time.

        Calls `remind` when a deferred chunk is due: the queue goes by the wall clock, which may be set back by hours.
        """
        self._chunks = chunks
        self._work = work
        self._sleep = sleep
        self._remind = remind
        self._places = ConcurrencyLimit(start=in_flight, most=in_flight)  # tenants take turns at them
        self._gate = ExclusiveGate()
        self._recorder = Recorder(chunks, in_flight=in_flight, stopped=lambda: self._ended)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="items")
        self._running: dict[Lease, _Attempt] = {}
        self._watching: asyncio.Task[None] | None = None
        self._deferred_chunks: dict[tuple[ChunkId, int], _DeferredChunk] = {}
        self._reminding: set[asyncio.Future[None]] = set()  # the event loop keeps only weak references to tasks
        self._draining = False
        self._ended = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def drain(self, grace: float) -> None:
        """Begin no further item; give running ones `grace` seconds, and leave the rest to whoever takes it next."""
        self._draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace)
        if self._watching is not None:
            self._watching.cancel()

    def close(self) -> None:
        """Drop what the database did not take."""
        self._draining = self._ended = True
        self._recorder.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def idle(self) -> bool:
        """Whether no chunk is running."""
        return self._idle.is_set()

    async def run(self, chunk: ChunkId, generation: int, is_owner: OwnerCheck) -> AttemptEnd:
        """Lease a chunk and work on it for as long as the lease counts.

        A process that was frozen before it leased may wake up when the chunk is another's. So it takes the lease only if nobody
        has taken one since it checked `is_owner`, and checks again before it pays.
        """
        attempts = await self._run_in_database(lambda: self._chunks.count_attempts(chunk))
        if not await is_owner():
            return "refused"
        try:
            leased = await self._run_in_database(lambda: self._chunks.lease(chunk, generation, attempts=attempts))
        except LeasedElsewhere:
            return "refused"
        if leased is None:
            return "done"
        if not await is_owner():
            return "refused"
        attempt = self._build_attempt(leased)
        trusted, suspected, quarantined = sort_by_trust(leased)
        self._running[leased.lease] = attempt
        self._idle.clear()
        self._watching = self._watching or asyncio.create_task(self._watch())
        try:
            await self._quarantine(attempt, quarantined)
            await self._run_in_rounds(attempt, trusted)
            await self._run_alone(attempt, suspected)
            return await self._end_attempt(attempt)
        finally:
            del self._running[leased.lease]
            if not self._running:
                self._idle.set()

    def _build_attempt(self, leased: LeasedChunk) -> _Attempt:
        account = Account(leased.spent, Spending(leased.cap_usd, cap_calls=leased.cap_questions))
        attempt = _Attempt(leased, account)
        account.write_ahead(lambda: self._record(attempt, ()))
        return attempt

    async def _quarantine(self, attempt: _Attempt, items: Sequence[ChunkItem]) -> None:
        for item in items:
            fields = {
                "batch": attempt.leased_chunk.lease.chunk.batch,
                "item": item.position,
                "deaths": attempt.leased_chunk.suspects.count_deaths(item.position),
            }
            LOG.error("an item took its worker down; it is quarantined", extra={"fields": fields})
        if items:
            await self._record(attempt, [build_quarantined_row(item) for item in items])

    async def _run_alone(self, attempt: _Attempt, items: Sequence[ChunkItem]) -> None:
        """Work on one item after the other while nothing else runs in this process: each may bring it down."""
        for item in items:
            async with self._gate.enter_alone():
                if attempt.stops or self._draining or not await self._mark_under_way(attempt, [item]):
                    return
                (outcome,) = await self._run_in_thread(lambda item=item: self._work.begin([item]))
                if isinstance(outcome, OutcomeRow):
                    await self._record(attempt, [outcome])
                else:
                    await self._finish_item(attempt, outcome, last=True)
                await self._mark_under_way(attempt, ())

    async def _mark_under_way(self, attempt: _Attempt, items: Iterable[ChunkItem]) -> bool:
        """Record which items are about to begin; False if the lease no longer counts. Needed only after a death."""
        if not attempt.leased_chunk.suspects.deaths:
            return True
        marked = attempt.leased_chunk.suspects.mark_under_way({*attempt.under_way, *[item.position for item in items]})
        if not await self._run_in_database(lambda: self._chunks.mark_under_way(attempt.leased_chunk.lease, marked)):
            attempt.supersede()
        return not attempt.superseded

    async def _run_in_rounds(self, attempt: _Attempt, items: Sequence[ChunkItem]) -> None:
        await self._begin(attempt, items)
        for number in range(2, MAX_ROUNDS + 1):
            if not attempt.retries or attempt.stops or self._draining:
                return
            await self._sleep(2.0 ** (number - 2))
            waiting, attempt.retries = attempt.retries, []
            await self._finish(attempt, waiting, last=number == MAX_ROUNDS)

    async def _begin(self, attempt: _Attempt, items: Sequence[ChunkItem]) -> None:
        """Work on each block of items; items that wait run on while code works on the next block."""
        async with asyncio.TaskGroup() as group:
            recording: asyncio.Task[bool] | None = None  # one block is recorded while code works on the next
            for block in split_blocks(items):
                async with self._gate.enter_together():
                    if attempt.stops or self._draining or not await self._mark_under_way(attempt, block):
                        break
                    outcomes = await self._run_in_thread(lambda block=block: self._work.begin(block))
                attempt.under_way |= {one.item.position for one in outcomes if isinstance(one, WaitingItem)}
                done = [one for one in outcomes if isinstance(one, OutcomeRow)]
                if done:
                    await _settle(recording)
                    recording = group.create_task(self._record(attempt, done))
                await self._start(attempt, [one for one in outcomes if isinstance(one, WaitingItem)], group, last=False)

    async def _finish(self, attempt: _Attempt, waiting: Sequence[WaitingItem], *, last: bool) -> None:
        async with asyncio.TaskGroup() as group:
            await self._start(attempt, waiting, group, last=last)

    async def _start(
        self, attempt: _Attempt, waiting: Sequence[WaitingItem], group: asyncio.TaskGroup, *, last: bool
    ) -> None:
        def release(task: asyncio.Task[None]) -> None:
            attempt.tasks.discard(task)
            self._places.release()

        for one in waiting:
            await self._places.acquire(attempt.leased_chunk.tenant)
            if attempt.stops or self._draining:
                self._places.release()
                return
            task = group.create_task(self._finish_together(attempt, one, last=last))
            attempt.tasks.add(task)
            task.add_done_callback(release)

    async def _finish_together(self, attempt: _Attempt, waiting: WaitingItem, *, last: bool) -> None:
        async with self._gate.enter_together():
            await self._finish_item(attempt, waiting, last=last)

    async def _finish_item(self, attempt: _Attempt, waiting: WaitingItem, *, last: bool) -> None:
        outcome = await self._work.finish(waiting, attempt.leased_chunk.tenant, attempt.account.spending, last=last)
        if isinstance(outcome, OutcomeRow):
            if self._deferred_chunks:
                self._wake_deferred(attempt.leased_chunk.lease.chunk.batch)
            await self._record(attempt, [outcome])
            attempt.under_way.discard(outcome.position)
        elif outcome.all_wait:
            attempt.deferral = (
                outcome
                if attempt.deferral is None
                else max(attempt.deferral, outcome, key=lambda one: (one.of_budget, one.delay))
            )
        else:
            attempt.retries.append(waiting)

    async def _record(self, attempt: _Attempt, rows: Sequence[OutcomeRow]) -> bool:
        """Record rows and spending; False if the lease no longer counts."""
        if not attempt.superseded and not await self._recorder.put(attempt.leased_chunk.lease, attempt.account, rows):
            await self._supersede(attempt)
        return not attempt.superseded

    async def _supersede(self, attempt: _Attempt) -> None:
        """Give up a superseded attempt. If the process was frozen, its other chunks are lost too, and must not get its places."""
        attempt.others_check = attempt.others_check or asyncio.ensure_future(self._check_others(attempt))
        await asyncio.shield(attempt.others_check)
        attempt.supersede()

    async def _check_others(self, lost: _Attempt) -> None:
        others = [attempt for attempt in self._running.values() if attempt is not lost and not attempt.superseded]
        counts = await asyncio.gather(
            *[self._recorder.put(attempt.leased_chunk.lease, attempt.account, ()) for attempt in others]
        )
        for attempt in [attempt for attempt, counted in zip(others, counts, strict=True) if not counted]:
            attempt.supersede()

    async def _end_attempt(self, attempt: _Attempt) -> AttemptEnd:
        """Settle a chunk after its attempt: done, deferred or superseded."""
        lease = attempt.leased_chunk.lease
        if attempt.superseded:
            return "refused"
        if attempt.batch_over:
            closed = await self._run_in_database(
                lambda: self._chunks.close(lease, spent=attempt.account.compute_totals())
            )
            return "done" if closed else "refused"
        if attempt.deferral is None and not attempt.retries and not self._draining:
            return "done"
        return await self._defer(attempt, attempt.deferral)

    async def _defer(self, attempt: _Attempt, deferral: Deferral | None) -> AttemptEnd:
        lease = attempt.leased_chunk.lease
        pause: Pause | None = None
        if deferral is not None:
            pause = "paused_budget" if deferral.of_budget else "paused_provider"
        delay, reason = (deferral.delay, deferral.reason) if deferral else (GIVEN_BACK_DELAY_S, None)
        generation = await self._run_in_database(
            lambda: self._chunks.defer(
                lease, delay=delay, spent=attempt.account.compute_totals(), pause=pause, reason=reason
            )
        )
        if generation is None:
            return "refused"
        loop, key = asyncio.get_running_loop(), (lease.chunk, generation)
        self._deferred_chunks[key] = _DeferredChunk(
            loop.time(), loop.call_later(delay + REMINDER_LAG_S, self._remind_now, key)
        )
        return "put off"

    def _remind_now(self, key: tuple[ChunkId, int]) -> None:
        """Report a deferred chunk as due."""
        self._deferred_chunks.pop(key).timer.cancel()
        if self._remind is not None and not self._draining:
            task = asyncio.ensure_future(self._remind(*key))
            self._reminding.add(task)
            task.add_done_callback(self._reminding.discard)

    def _wake_deferred(self, batch: str) -> None:
        """Wake the deferred chunks of a batch whose judge answers again, except those deferred just now."""
        before = asyncio.get_running_loop().time() - REMINDER_LAG_S
        for key in [
            key for key, wait in self._deferred_chunks.items() if key[0].batch == batch and wait.since < before
        ]:
            self._remind_now(key)

    async def _watch(self) -> None:
        """Mark the attempts whose batches are over."""
        try:
            while self._running:
                await asyncio.sleep(CANCEL_POLL_S)
                over = await self._run_in_database(
                    lambda: self._chunks.find_over({one.chunk.batch for one in self._running})
                )
                for lease, attempt in self._running.items():
                    attempt.batch_over = attempt.batch_over or lease.chunk.batch in over
        finally:
            self._watching = None

    async def _run_in_database(self, work: Callable[[], T]) -> T:
        """Retry a database call for as long as the database is out of reach."""
        return await asyncio.to_thread(lambda: insist(work, stopped=lambda: self._ended))

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def sort_by_trust(leased: LeasedChunk) -> tuple[list[ChunkItem], list[ChunkItem], list[ChunkItem]]:
    """Sort items into those that may run together, those that must run alone, and those that are not tried again."""
    trusted, suspected, quarantined = list[ChunkItem](), list[ChunkItem](), list[ChunkItem]()
    for item in leased.items:
        deaths = leased.suspects.count_deaths(item.position)
        (quarantined if deaths >= QUARANTINE_DEATHS else suspected if deaths >= ALONE_DEATHS else trusted).append(item)
    suspected.sort(
        key=lambda item: -leased.suspects.count_deaths(item.position)
    )  # a guilty one is known soonest, an innocent one freed
    return trusted, suspected, quarantined


async def _settle(task: asyncio.Task[bool] | None) -> None:
    if task is not None:
        await asyncio.wait([task])
