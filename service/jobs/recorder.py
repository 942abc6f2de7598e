"""Write what comes of items and what they cost: many outcomes in one commit, and callers wait until it is made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from service.asking.budget.reservations import Account, Cover
from service.core.money import UsageAmount
from service.errors import BatchSpentError, BusyError
from service.jobs.items import build_unrecordable_row
from service.store.database import insist
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ClaimedChunk, Lease, OutcomeRow, OutcomeRows

LOG = logging.getLogger("callgrade.batches")

T = TypeVar("T")

COMMIT_INTERVAL_S = 0.1
"""Seconds between commits: where outcomes come one by one, a commit for each would cost more than the outcome itself."""

MAX_WAITING_ROWS = 50
"""Waiting rows that trigger the next commit at once; fewer where there are fewer than twice as many places."""

CALLS_AHEAD = 64
"""Calls that are reserved together before they are made: as many may be counted in vain where a worker dies."""

BUDGET_SPENT = "the budget leaves no room for what the next call may cost"
QUESTIONS_SPENT = "the batch has used up its questions to judges (max_questions)"


class BatchAccount(Account):
    """What this process spends on one batch."""

    def __init__(self, chunk: ClaimedChunk, before: UsageAmount, recorder: Recorder) -> None:
        """`before`: what this process had used for the batch when it last had a chunk of it."""
        super().__init__(before, ahead=CALLS_AHEAD)
        self.batch = chunk.lease.batch
        self.chunks = 0
        """How many chunks of the batch run here."""
        self._recorder = recorder
        self._reason = ""

    async def hold(self, cover: Cover) -> bool:
        """Reserve calls up to `cover`; False if a limit of the batch forbids it."""
        spent = await self._recorder.hold(self, cover)
        self._reason = QUESTIONS_SPENT if spent == "max_questions" else BUDGET_SPENT
        return spent is None

    def build_refusal(self) -> BatchSpentError:
        """Build the error for a call that the batch leaves no room for."""
        return BatchSpentError(self._reason)


@dataclass(frozen=True, slots=True)
class _PendingWrite:
    lease: Lease
    account: BatchAccount
    rows: Sequence[OutcomeRow]
    recorded: asyncio.Future[bool]


class Recorder:
    """Writes one commit at a time, in its own thread; what arrives meanwhile goes into the next one.

    While the database is out of reach it waits: an outcome that was paid for is not thrown away.
    """

    def __init__(
        self,
        chunks: Chunks,
        *,
        in_flight: int,
        stopped: Callable[[], bool] = lambda: False,
        interval_s: float = COMMIT_INTERVAL_S,
    ) -> None:
        """`in_flight`: items at once, which keep their places until they are recorded; `interval_s`: seconds between commits."""
        self._chunks = chunks
        self._max_waiting = max(1, min(MAX_WAITING_ROWS, in_flight // 2))
        self._stopped = stopped
        self._waiting: list[_PendingWrite] = []
        self._waiting_rows = 0
        self._enough = asyncio.Event()
        self._interval_s = interval_s
        self._last_commit_at = -interval_s  # when the last commit began, by the loop's clock
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recorder")
        self._writing = asyncio.Lock()  # sums are taken and written in one order
        self._accounts: dict[str, BatchAccount] = {}

    async def open_account(self, chunk: ClaimedChunk) -> BatchAccount:
        """Return the account of a chunk's batch, which `close_account` ends."""
        async with self._writing:  # so that nobody reads what another one is about to add to
            if (account := self._accounts.get(chunk.lease.batch)) is None:
                before = await self._run(lambda: self._chunks.read_used(chunk.lease.batch))
                account = self._accounts[chunk.lease.batch] = BatchAccount(chunk, before, self)
            account.chunks += 1
            return account

    async def close_account(self, account: BatchAccount) -> None:
        """Count one chunk less on an account; write it a last time after the last one."""
        async with self._writing:
            account.chunks -= 1
            if not account.chunks:
                del self._accounts[account.batch]
                if (used := account.sum_used()) != account.written:
                    await self._run(lambda: self._chunks.write_used(account.batch, used))

    async def put(self, lease: Lease, account: BatchAccount, rows: Sequence[OutcomeRow]) -> bool:
        """Record rows of a chunk; False if its lease no longer counts, and nothing was recorded.

        Raises BusyError if the database stays out of reach until the worker ends.
        """
        write = _PendingWrite(lease, account, rows, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        self._waiting_rows += len(rows)
        if self._waiting_rows >= self._max_waiting:
            self._enough.set()
        if self._task is None:
            self._task = asyncio.create_task(self._write())
        return await write.recorded

    async def hold(self, account: BatchAccount, cover: Cover) -> str | None:
        """Reserve calls up to `cover`, and let the account go so far; else return the limit that forbids it."""
        async with self._writing:
            used = account.sum_used(cover)
            spent = await self._run(lambda: self._chunks.hold(account.batch, used))
            if spent is None:
                account.written = used
                account.cover(cover)
            return spent

    async def put_off(self, lease: Lease, account: BatchAccount, **options: Any) -> bool:
        """Leave a chunk for later, as `Chunks.put_off` does."""
        async with self._writing:
            used = account.written = account.sum_used()
            return await self._run(lambda: self._chunks.put_off(lease, used=used, **options))

    def close(self) -> None:
        """Release the thread."""
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._call(partial(insist, work, stopped=self._stopped))

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                with suppress(TimeoutError):  # until enough rows have come, or the last commit is long enough ago
                    async with asyncio.timeout_at(self._last_commit_at + self._interval_s):
                        await self._enough.wait()
                self._last_commit_at = loop.time()
                writes, self._waiting, self._waiting_rows = self._waiting, [], 0
                self._enough.clear()
                await self._commit(writes)
        finally:
            self._task = None

    async def _commit(self, writes: list[_PendingWrite]) -> None:
        try:
            async with self._writing:
                groups = _group(writes)
                recorded = await self._call(partial(self._record, [*groups.values()]))
        except Exception as error:  # noqa: BLE001 (passed on to each waiting caller)
            for write in writes:
                if not write.recorded.done():  # the caller may have been cancelled
                    write.recorded.set_exception(error)
            return
        counts = dict(zip(groups, recorded, strict=True))
        for write in writes:
            write.account.written = groups[write.lease].used or write.account.written
            if not write.recorded.done():
                write.recorded.set_result(counts[write.lease])

    def _record(self, groups: list[OutcomeRows]) -> list[bool]:
        """Record all in one commit; one by one where one of them is at fault, as the others are somebody else's."""
        try:
            return insist(lambda: self._chunks.record(groups), stopped=self._stopped)
        except BusyError:
            raise
        except Exception as error:
            if len(groups) > 1:
                return [self._record([group])[0] for group in groups]
            [group] = groups
            if len(group.rows) > 1:
                return [all(self._record([group._replace(rows=[row])])[0] for row in group.rows)]
            if not group.rows:
                raise
            LOG.error("an outcome cannot be recorded", exc_info=error)  # noqa: TRY400 (with the error beside it)
            row = build_unrecordable_row(group.rows[0].position)
            return insist(lambda: self._chunks.record([group._replace(rows=[row])]), stopped=self._stopped)


def _group(writes: list[_PendingWrite]) -> dict[Lease, OutcomeRows]:
    """Group the writes by lease, each group with what its account has used by now, if that is new."""
    used = {write.account: write.account.sum_used() for write in writes}
    groups: dict[Lease, OutcomeRows] = {}
    for write in writes:
        before = groups[write.lease].rows if write.lease in groups else ()
        new = None if used[write.account] == write.account.written else used[write.account]
        groups[write.lease] = OutcomeRows(write.lease, [*before, *write.rows], new)
    return groups
