"""The daily spending of tenants: counted in the database, and reserved there before it happens."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Literal

from service.asking.budget.reservations import Account, Cover, Spending
from service.core.money import format_usd
from service.errors import BusyError, DaySpentError
from service.store.access.usage import Caps, UsageStore
from service.store.database import insist
from service.store.times import DAY_S

LOG = logging.getLogger("callgrade.usage")

FLUSH_S = 2.0
"""Seconds between writes of what was used."""

NO_CAPS = Caps()

CALLS_AHEAD = 32
"""Calls that are reserved together, so that not every one of them waits for the database."""

PATIENCE_S = 2.0
"""Seconds that a call waits for a database that is out of reach."""

RETRY_S = 5.0
"""Seconds after which a call that could not be counted is worth another try."""


class Days:
    """The days of all tenants of one process, in one event loop."""

    def __init__(self, store: UsageStore, caps: Caps = NO_CAPS, *, now: Callable[[], float] = time.time) -> None:
        self.store = store
        self.caps = caps
        self.now = now
        self._days: dict[tuple[str, int], _Day] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="days")

    @property
    def today(self) -> int:
        """The day, counted from 1970, in UTC."""
        return int(self.now() // DAY_S)

    def get_spending(self, tenant: str) -> Spending:
        """Return today's spending of a tenant."""
        key = tenant, self.today
        if key not in self._days:
            self._days[key] = _Day(*key, self)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_on())
        return self._days[key]

    async def flush(self) -> None:
        """Write what was used, and give back reservations that are not needed."""
        for key, day in list(self._days.items()):
            await day.flush()
            if key[1] < self.today and day.is_idle and day.sum_used() == day.written:
                self._days.pop(key, None)

    async def run_stored(self, work: Callable[[], bool]) -> bool:
        """Run the work on the database. Raises BusyError if it stays out of reach."""
        call = partial(insist, work, give_up=PATIENCE_S)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def close(self) -> None:
        """Write a last time."""
        if self._flushing is not None:
            self._flushing.cancel()
        try:
            await self.flush()
        except BusyError as error:
            LOG.warning("usage is not counted", extra={"fields": {"why": str(error)}})
        self._thread.shutdown(wait=False)

    async def _flush_on(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            try:
                await asyncio.shield(self.flush())  # one that `close` cuts off would be written again
            except BusyError as error:  # it is written later
                LOG.warning("usage is not counted yet", extra={"fields": {"why": str(error)}})


class _Day(Account):
    """One day of one tenant, as this process spends it."""

    def __init__(self, tenant: str, day: int, days: Days) -> None:
        super().__init__(ahead=CALLS_AHEAD, limited=days.caps != NO_CAPS)
        self._key = tenant, day
        self._days = days
        self._reason = ""
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[bool]] = set()

    async def advance(self, worst: float) -> bool:
        """Reserve some more calls. The waiter may go away: what is being written counts."""
        task = asyncio.create_task(self._advance(worst))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _advance(self, worst: float) -> bool:
        async with self._writing:
            return await super().advance(worst)

    async def hold(self, cover: Cover) -> bool:
        """Reserve so much of the day; while the database cannot be written, by reading alone.

        Then nothing is seen of what other processes could not write either: a full disk is no reason to refuse what needs
        none. Raises DaySpentError if it cannot even be read.
        """
        caps = self._days.caps
        try:
            with suppress(BusyError):
                return await self._write(cover, caps) or await self._explain(cover)
            if await self._fits(cover, caps):
                self.cover(cover)
                return True
            return await self._explain(cover)
        except BusyError:
            reason = "today's usage cannot be looked up: the database is away"
            raise DaySpentError(reason, retry_after=RETRY_S) from None

    async def _fits(self, cover: Cover, caps: Caps) -> bool:
        added, store = self.sum_used(cover) - self.written, self._days.store
        return await self._days.run_stored(lambda: store.fits(*self._key, added, caps))

    async def _explain(self, cover: Cover) -> Literal[False]:
        """Note which cap forbids so much."""
        questions, usd = self._days.caps
        limit, setting = f"ask {questions} questions", "CALLGRADE_TENANT_DAY_MAX_QUESTIONS"
        if usd is not None and await self._fits(cover, Caps(questions)):
            limit, setting = f"spend {format_usd(usd)} on judges", "CALLGRADE_TENANT_DAY_MAX_USD"
        self._reason = (
            f"a tenant may {limit} a day (UTC), by {setting}, and the rest of today's is not enough for another"
        )
        return False

    def build_refusal(self) -> DaySpentError:
        """Build the error for a day that is used up."""
        return DaySpentError(self._reason, retry_after=DAY_S - self._days.now() % DAY_S)

    async def flush(self) -> None:
        """Write what was used. Give back what is reserved if nothing is under way."""
        async with self._writing:
            if self.sum_used() != self.written:
                await self._write(None, NO_CAPS)  # it is used already

    async def _write(self, cover: Cover | None, caps: Caps) -> bool:
        """Bring the database up to date, with so much covered; False if a cap forbids it."""
        used, store = self.sum_used(cover), self._days.store
        added = used - self.written
        if not await self._days.run_stored(lambda: store.add(*self._key, added, caps)):
            return False
        self.written = used
        self.cover(cover)
        return True
