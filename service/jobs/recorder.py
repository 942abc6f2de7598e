"""Record outcomes as they come: many in one commit, and callers wait until it is made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from service.asking.budget.reservations import Spending
from service.errors import BusyError, JudgeError
from service.jobs.items import build_unrecordable_row
from service.store.database import insist
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ChunkSpending, Lease, OutcomeRow, OutcomeRows

LOG = logging.getLogger("callgrade.batches")

MAX_COMMIT_ROWS = 500
"""Most rows in one commit."""

COMMIT_INTERVAL_S = 0.03
"""Seconds between commits: where outcomes come one by one, a commit for each would cost more than the outcome itself."""

MAX_WAITING_ROWS = 50
"""Waiting rows that trigger the next commit at once; fewer where there are fewer than twice as many places."""


CALLS_AHEAD = 16
"""Calls that are written down together before they are made, where there is a limit on spending."""


class Cover(NamedTuple):
    """How far the dollars and the calls of a chunk may go by what the database has on record."""

    usd: float = 0.0
    calls: float = 0.0


NO_COVER = Cover()


@dataclass(slots=True)
class Account:
    """What a chunk has cost: in earlier attempts, and in this one."""

    before: ChunkSpending
    spending: Spending
    pending_cover: Cover | None = None
    """How far the next commit must cover the spending; None where nobody waits for that."""

    def write_ahead(self, write: Callable[[], Awaitable[bool]]) -> None:
        """From now on, record capped spending before it happens. `write` as in `ChunkBacking`."""
        own = self.spending
        if (own.cap_usd, own.cap_calls) == (None, None):
            return
        own.backing = ChunkBacking(self, write)
        own.covered_usd = inf if own.cap_usd is None else 0.0
        own.covered_calls = inf if own.cap_calls is None else 0

    def compute_totals(self) -> ChunkSpending:
        """Sum what was spent and what may have been, including calls that may be made before the next commit."""
        own, before = self.spending, self.before
        if own.backing is not None and own.is_idle and self.pending_cover is None:  # and no call starts until then
            self._shrink_cover()
        return ChunkSpending(
            before.usd + own.spent_usd,
            before.uncertain_usd + self._sum_uncertain_usd(),
            before.questions + self._count_calls(),
        )

    def _shrink_cover(self) -> None:
        own = self.spending
        own.covered_usd = inf if own.cap_usd is None else own.committed_usd
        own.covered_calls = inf if own.cap_calls is None else own.calls

    def _sum_uncertain_usd(self) -> float:
        own = self.spending
        if own.backing is None or own.cap_usd is None:
            return own.uncertain_usd
        return max(own.committed_usd, own.covered_usd, (self.pending_cover or NO_COVER).usd) - own.spent_usd

    def _count_calls(self) -> int:
        own = self.spending
        if own.backing is None or own.cap_calls is None:
            return own.calls
        return int(max(own.calls, own.covered_calls, (self.pending_cover or NO_COVER).calls))


class ChunkBacking:
    """Records calls of a chunk that has a limit before they are made: the worker may die while they run."""

    def __init__(self, account: Account, write: Callable[[], Awaitable[bool]]) -> None:
        """`write` commits the totals and returns False if the lease no longer counts."""
        self._account = account
        self._write = write

    async def advance(self, worst_usd: float) -> bool:
        """Cover some more calls, as far as the cap allows; False if the lease no longer counts."""
        account, own = self._account, self._account.spending
        account.pending_cover = cover = Cover(
            max(own.covered_usd, _look_ahead(own.committed_usd, worst_usd, own.cap_usd)),
            max(own.covered_calls, _look_ahead(own.calls, 1, own.cap_calls)),
        )
        try:
            counts = await self._write()
        finally:
            account.pending_cover = None
        if counts:
            own.covered_usd, own.covered_calls = cover
        return counts

    def build_refusal(self) -> JudgeError:
        """Build the error for a lease that may no longer spend."""
        return JudgeError("budget_exhausted", "another worker has taken the chunk over")


def _look_ahead(used: float, step: float, cap: float | None) -> float:
    """Return where some more calls lead, as far as the cap allows; at least one call in any case."""
    most = used + CALLS_AHEAD * step
    return most if cap is None else max(used + step, min(cap, most))


@dataclass(frozen=True, slots=True)
class _PendingWrite:
    lease: Lease
    account: Account
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
        self._waiting_rows = 0  # in self._waiting
        self._enough = asyncio.Event()
        self._interval_s = interval_s
        self._last_commit_at = -interval_s  # when the last commit began, by the loop's clock
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recorder")

    async def put(self, lease: Lease, account: Account, rows: Sequence[OutcomeRow]) -> bool:
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

    def close(self) -> None:
        """Release the thread."""
        self._thread.shutdown(wait=False)

    async def _write(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                self._last_commit_at = asyncio.get_running_loop().time()
                await self._commit(self._take())
        finally:
            self._task = None

    async def _gather(self) -> None:
        """Wait until enough rows have come, or the last commit is long enough ago."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._last_commit_at + self._interval_s):
                await self._enough.wait()

    def _take(self) -> list[_PendingWrite]:
        count = rows = 0
        for write in self._waiting:
            if count and rows + len(write.rows) > MAX_COMMIT_ROWS:
                break
            rows += len(write.rows)
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        self._waiting_rows -= rows
        if self._waiting_rows < self._max_waiting:
            self._enough.clear()
        return batch

    async def _commit(self, writes: list[_PendingWrite]) -> None:
        loop = asyncio.get_running_loop()
        try:
            groups = _group(writes)
            recorded = await loop.run_in_executor(self._thread, self._record, list(groups.values()))
        except Exception as error:  # noqa: BLE001 (passed on to each waiting caller)
            for write in writes:
                if not write.recorded.done():  # the caller may have been cancelled
                    write.recorded.set_exception(error)
            return
        counts = dict(zip(groups, recorded, strict=True))
        for write in writes:
            if not write.recorded.done():
                write.recorded.set_result(counts[write.lease])

    def _record(self, groups: list[OutcomeRows]) -> list[bool]:
        """Record all in one commit; one by one where one of them is at fault, as the others are somebody else's."""
        try:
            return insist(lambda: self._chunks.record(groups), stopped=self._stopped)
        except BusyError:
            raise
        except Exception as error:
            if len(groups) == 1 and not groups[0].rows:
                raise
            if len(groups) == 1 and len(groups[0].rows) == 1:
                LOG.error("an outcome cannot be recorded", exc_info=error)  # noqa: TRY400 (with the error beside it)
                row = build_unrecordable_row(groups[0].rows[0].position)
                return insist(lambda: self._chunks.record([groups[0]._replace(rows=[row])]), stopped=self._stopped)
        if len(groups) > 1:
            return [self._record([group])[0] for group in groups]
        return [all(self._record([groups[0]._replace(rows=[row])])[0] for row in groups[0].rows)]


def _group(writes: list[_PendingWrite]) -> dict[Lease, OutcomeRows]:
    """Group the writes by lease, each group with the totals as they stand now."""
    groups: dict[Lease, list[_PendingWrite]] = {}
    for write in writes:
        groups.setdefault(write.lease, []).append(write)
    return {
        lease: OutcomeRows(
            lease, [row for write in several for row in write.rows], several[-1].account.compute_totals()
        )
        for lease, several in groups.items()
    }
