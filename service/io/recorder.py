"""Recording outcomes as they come: many in one commit, and nobody is told before it is made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from service.errors import BusyError
from service.io.items import unrecordable
from service.io.spending import Spending
from service.io.store.chunks import Chunks, Hold, Row, Rows
from service.io.store.database import insisting

LOG = logging.getLogger("callgrade.batches")

MOST = 500
"""Rows in one commit."""

APART = 0.03
"""Seconds from one commit to the next: where outcomes come one by one, a commit of each would cost more than it does."""

ENOUGH = 50
"""Rows that wait no longer than for the commit under way; fewer, where there are fewer than twice as many places."""


@dataclass(frozen=True, slots=True)
class Account:
    """What a chunk has cost: before it was opened this time, and since."""

    spent_usd: float
    uncertain_usd: float
    spending: Spending

    def totals(self) -> tuple[float, float]:
        """US dollars that were spent, and that may have been."""
        return self.spent_usd + self.spending.spent_usd, self.uncertain_usd + self.spending.uncertain_usd


@dataclass(frozen=True, slots=True)
class _Put:
    hold: Hold
    account: Account
    rows: Sequence[Row]
    told: asyncio.Future[bool]


class Recorder:
    """Writes one commit at a time, in a thread of its own; what comes meanwhile goes into the next one.

    While the database is out of reach it waits: an outcome that was paid for is not thrown away.
    """

    def __init__(
        self, chunks: Chunks, *, in_flight: int, stopped: Callable[[], bool] = lambda: False, apart: float = APART
    ) -> None:
        """`in_flight`: items at once, whose places are taken until they are recorded; `apart`: seconds between commits."""
        self._chunks = chunks
        self._most = max(1, min(ENOUGH, in_flight // 2))
        self._stopped = stopped
        self._waiting: list[_Put] = []
        self._rows = 0  # that wait
        self._enough = asyncio.Event()
        self._apart = apart
        self._last = -apart  # when the last commit was begun, by the loop's clock
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recorder")

    async def put(self, hold: Hold, account: Account, rows: Sequence[Row]) -> bool:
        """Records rows of a chunk; False where its opening does not count any more, and nothing was recorded.

        Raises BusyError where the database stays out of reach until the worker ends.
        """
        put = _Put(hold, account, rows, asyncio.get_running_loop().create_future())
        self._waiting.append(put)
        self._rows += len(rows)
        if self._rows >= self._most:
            self._enough.set()
        if self._task is None:
            self._task = asyncio.create_task(self._write())
        return await put.told

    def close(self) -> None:
        """Lets go of the thread."""
        self._thread.shutdown(wait=False)

    async def _write(self) -> None:
        try:
            while self._waiting:
                await self._gathered()
                self._last = asyncio.get_running_loop().time()
                await self._written(self._taken())
        finally:
            self._task = None

    async def _gathered(self) -> None:
        """Waits until enough has come, or the last commit is long enough ago."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._last + self._apart):
                await self._enough.wait()

    def _taken(self) -> list[_Put]:
        count = rows = 0
        for put in self._waiting:
            if count and rows + len(put.rows) > MOST:
                break
            rows += len(put.rows)
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self._rows -= rows
        if self._rows < self._most:
            self._enough.clear()
        return taken

    async def _written(self, puts: list[_Put]) -> None:
        loop = asyncio.get_running_loop()
        try:
            groups = _grouped(puts)
            kept = await loop.run_in_executor(self._thread, self._recorded, list(groups.values()))
        except Exception as error:  # noqa: BLE001 (told to each of those who wait)
            for put in puts:
                if not put.told.done():  # who waited may have been cancelled
                    put.told.set_exception(error)
            return
        counts = dict(zip(groups, kept, strict=True))
        for put in puts:
            if not put.told.done():
                put.told.set_result(counts[put.hold])

    def _recorded(self, groups: list[Rows]) -> list[bool]:
        """All in one commit; each by itself where one of them is at fault, for the others belong to somebody else."""
        try:
            return insisting(lambda: self._chunks.record(groups), stopped=self._stopped)
        except BusyError:
            raise
        except Exception as error:
            if len(groups) == 1 and len(groups[0].rows) == 1:
                LOG.error("an outcome cannot be recorded", exc_info=error)  # noqa: TRY400 (with what is told beside it)
                row = unrecordable(groups[0].rows[0].position)
                return insisting(lambda: self._chunks.record([groups[0]._replace(rows=[row])]), stopped=self._stopped)
        if len(groups) > 1:
            return [self._recorded([group])[0] for group in groups]
        return [all(self._recorded([groups[0]._replace(rows=[row])])[0] for row in groups[0].rows)]


def _grouped(puts: list[_Put]) -> dict[Hold, Rows]:
    """The puts by opening, each with the sums as they stand now."""
    groups: dict[Hold, list[_Put]] = {}
    for put in puts:
        groups.setdefault(put.hold, []).append(put)
    return {
        hold: Rows(hold, [row for put in several for row in put.rows], *several[-1].account.totals())
        for hold, several in groups.items()
    }
