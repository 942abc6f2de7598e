"""Run the items of a chunk: a bounded number at a time, each recorded before the next takes its place.

So a process that dies has paid for no more than what was under way, and nothing that was recorded runs again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from service.asking.limits import ConcurrencyLimit
from service.jobs.items import Deferral, ItemScorer, WaitingItem, build_quarantined_row, split_blocks
from service.jobs.recorder import BatchAccount, Recorder
from service.store.database import insist
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import QUARANTINE_DEATHS, ChunkItem, ClaimedChunk, Lease, OutcomeRow

if TYPE_CHECKING:
    from service.jobs.provider_judging import ProviderJudging

LOG = logging.getLogger("callgrade.batches")

T = TypeVar("T")

MAX_ROUNDS = 4
"""Rounds in which an item is tried while its judge fails by chance; each round has the retries of a single call."""

WATCH_S = 0.5
"""Seconds between checks whether a batch was paused or cancelled."""


@dataclass(eq=False)
class _Attempt:
    """One attempt at a claimed chunk while it runs."""

    chunk: ClaimedChunk
    account: BatchAccount
    scorer: ItemScorer
    superseded: bool = False
    """Whether the chunk is another worker's now."""
    batch_stopped: bool = False
    """Whether the batch was paused or cancelled, or has expired."""
    deferral: Deferral | None = None
    """Why no other item of the chunk should be tried now."""
    retries: list[WaitingItem] = field(default_factory=list["WaitingItem"])
    """Items to try again."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """The tasks of the items under way."""

    @property
    def stops(self) -> bool:
        return self.superseded or self.batch_stopped or self.deferral is not None

    def supersede(self) -> None:
        """Stop: what is under way would be paid for in vain."""
        self.superseded = True
        for task in self.tasks - {asyncio.current_task()}:
            task.cancel()

    def defer(self, deferral: Deferral) -> None:
        """Try no further item now; of several reasons the budget counts, then the longest delay."""
        given = [deferral] if self.deferral is None else [self.deferral, deferral]
        self.deferral = max(given, key=lambda one: (one.of_budget, one.delay))


class Runner:
    """Runs chunks in one event loop, at most `in_flight` items at a time."""

    def __init__(
        self,
        chunks: Chunks,
        scorer: ItemScorer,
        *,
        in_flight: int,
        stage: ProviderJudging | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        threads: int = 2,
    ) -> None:
        """`stage` comes first. `sleep` waits before another round; `threads`: how many blocks code works on at a time."""
        self._chunks = chunks
        self._scorer = scorer
        self._stage = stage
        self._sleep = sleep
        self._places = ConcurrencyLimit(start=in_flight, most=in_flight)  # tenants take turns at them
        self._recorder = Recorder(chunks, in_flight=in_flight, stopped=lambda: self._ended)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="items")
        self._running: dict[Lease, _Attempt] = {}
        self._draining = False
        self._ended = False

    def drain(self) -> None:
        """Begin no further item: chunks end with what is under way, and the rest is put off."""
        self._draining = True

    def close(self) -> None:
        """Drop what the database did not take."""
        self._draining = self._ended = True
        self._recorder.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, chunk: ClaimedChunk) -> None:
        """Work on a claimed chunk until it is done, put off, or another worker's."""
        account = await self._recorder.open_account(chunk)
        attempt = self._running[chunk.lease] = _Attempt(chunk, account, self._scorer)
        try:
            if chunk.size == 1 and chunk.deaths >= QUARANTINE_DEATHS:
                [item] = chunk.items
                fields = {"batch": chunk.lease.batch, "item": item.position, "deaths": chunk.deaths}
                LOG.error("an item took its worker down; it is quarantined", extra={"fields": fields})
                await self._record(attempt, [build_quarantined_row(item)])
            else:
                await self._run_in_rounds(attempt)
            if not attempt.superseded and (attempt.stops or attempt.retries or self._draining):
                await self._put_off(attempt)
        except Exception:
            LOG.exception("a chunk could not be worked on; it is tried again")
            delay = 2.0 ** min(6, chunk.lease.attempt)
            await self._recorder.put_off(chunk.lease, account, delay=delay)
        finally:
            del self._running[chunk.lease]
            await self._recorder.close_account(account)

    def supersede(self, leases: Collection[Lease]) -> None:
        """Stop work on chunks that are another worker's now."""
        for lease in leases:
            if lease in self._running:
                self._running[lease].supersede()

    async def watch(self) -> None:
        """Notice for ever which batches were paused or are over."""
        while True:
            await asyncio.sleep(WATCH_S)
            if batches := {lease.batch for lease in self._running}:
                stopped = await self._run_in_database(partial(self._chunks.find_stopped, batches))
                for lease, attempt in self._running.items():
                    attempt.batch_stopped = attempt.batch_stopped or lease.batch in stopped

    async def _run_in_rounds(self, attempt: _Attempt) -> None:
        if self._stage is not None:
            prepared = await self._stage.prepare(attempt.chunk)
            if isinstance(prepared, Deferral):
                attempt.defer(prepared)
                return
            attempt.scorer = prepared
        await self._begin(attempt, attempt.chunk.items)
        for number in range(2, MAX_ROUNDS + 1):
            if not attempt.retries or attempt.stops or self._draining:
                return
            await self._sleep(2.0 ** (number - 2))
            waiting, attempt.retries = attempt.retries, []
            async with asyncio.TaskGroup() as group:
                await self._start(attempt, waiting, group, last=number == MAX_ROUNDS)

    async def _begin(self, attempt: _Attempt, items: Sequence[ChunkItem]) -> None:
        """Work on each block of items; items that wait run on while code works on the next block."""
        async with asyncio.TaskGroup() as group:
            recording: asyncio.Task[bool] | None = None  # one block is recorded while code works on the next
            for block in split_blocks(items):
                if attempt.stops or self._draining:
                    break
                loop = asyncio.get_running_loop()
                outcomes = await loop.run_in_executor(self._threads, attempt.scorer.begin, block)
                done = [one for one in outcomes if isinstance(one, OutcomeRow)]
                if done:
                    if recording is not None:
                        await asyncio.wait([recording])
                    recording = group.create_task(self._record(attempt, done))
                await self._start(attempt, [one for one in outcomes if isinstance(one, WaitingItem)], group, last=False)

    async def _start(
        self, attempt: _Attempt, waiting: Sequence[WaitingItem], group: asyncio.TaskGroup, *, last: bool
    ) -> None:
        # All are asked for at once: a tenant whose chunk asked for the next only when it had one would miss its turns.
        places = [asyncio.create_task(self._places.acquire(attempt.chunk.tenant)) for _ in waiting]
        try:
            for one in waiting:
                await places[0]
                if attempt.stops or self._draining:
                    return
                places.pop(0)
                task = group.create_task(self._finish_item(attempt, one, last=last))
                attempt.tasks.add(task)
                task.add_done_callback(lambda one: (attempt.tasks.discard(one), self._places.release()))
        finally:
            for place in places:
                if not place.cancel() and not place.cancelled():
                    self._places.release()

    async def _finish_item(self, attempt: _Attempt, waiting: WaitingItem, *, last: bool) -> None:
        outcome = await attempt.scorer.finish(waiting, attempt.chunk.tenant, attempt.account, last=last)
        if isinstance(outcome, OutcomeRow):
            await self._record(attempt, [outcome])
        elif outcome.all_wait:
            attempt.defer(outcome)
        else:
            attempt.retries.append(waiting)

    async def _record(self, attempt: _Attempt, rows: Sequence[OutcomeRow]) -> bool:
        """Record rows and spending; False if the chunk is another worker's.

        If the process was frozen, its other chunks are lost too, and must not get the places of this one.
        """
        if attempt.superseded or await self._recorder.put(attempt.chunk.lease, attempt.account, rows):
            return not attempt.superseded
        running = {*self._running}
        self.supersede(running - await self._run_in_database(self._chunks.list_owned))
        return False

    async def _put_off(self, attempt: _Attempt) -> None:
        """Leave the rest of a chunk for later. In a batch that is over, the store closes the chunk instead."""
        lease, deferral = attempt.chunk.lease, attempt.deferral
        delay, options = 0.0, dict[str, Any]()
        if deferral is not None:
            delay, pause = deferral.delay, "paused_budget" if deferral.of_budget else "paused_provider"
            options = {} if deferral.of_provider else {"pause": pause, "reason": deferral.reason}
            waits = {"batch": lease.batch, "reason": deferral.reason}
            waits |= {"seconds": round(delay, 1)} if delay else {}
            LOG.info("items wait", extra={"fields": waits})
        await attempt.scorer.flush()
        await self._recorder.put_off(lease, attempt.account, delay=delay, **options)

    async def _run_in_database(self, work: Callable[[], T]) -> T:
        """Retry a database call for as long as the database is out of reach."""
        return await asyncio.to_thread(insist, work, stopped=lambda: self._ended)
