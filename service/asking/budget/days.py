"""The daily spending of tenants: counted in the database, and reserved there before it happens."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from service.asking.budget.reservations import Spending
from service.errors import BusyError, DaySpentError
from service.store.access.usage import DAY_S, Caps, UsageAmount, UsageStore
from service.store.database import insist

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
        self._now = now
        self._days: dict[tuple[str, int], _Day] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="days")

    @property
    def today(self) -> int:
        """The day, counted from 1970, in UTC."""
        return int(self._now() // DAY_S)

    def get_spending(self, tenant: str) -> Spending:
        """Return today's spending of a tenant."""
        key = tenant, self.today
        if key not in self._days:
            self._days[key] = _Day(*key, self)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_on())
        return self._days[key].spending

    @property
    def until_tomorrow(self) -> float:
        """Seconds left of the day."""
        return DAY_S - self._now() % DAY_S

    async def flush(self) -> None:
        """Write what was used, and give back reservations that are not needed."""
        for key, day in list(self._days.items()):
            await day.flush()
            if key[1] < self.today and day.is_done:
                del self._days[key]

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
                await self.flush()
            except BusyError as error:  # it is written later
                LOG.warning("usage is not counted yet", extra={"fields": {"why": str(error)}})


class _Day:
    """One day of one tenant, as this process spends it."""

    def __init__(self, tenant: str, day: int, days: Days) -> None:
        self.spending = Spending()
        self._key = tenant, day
        self._days = days
        self._written = UsageAmount()
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[bool]] = set()
        if days.caps != NO_CAPS:
            self.spending.backing = self
            self.spending.covered_calls = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is under way and everything is written."""
        return self.spending.is_idle and self._sum_used(*self._sum_committed()) == self._written

    async def advance(self, worst_usd: float) -> bool:
        """Reserve some more calls, or only one if that is too many. The waiter may go away: what is being written counts."""
        task = asyncio.create_task(self._advance(worst_usd))
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        return await asyncio.shield(task)

    def _forget_task(self, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, as the waiter may have gone away

    async def _advance(self, worst_usd: float) -> bool:
        async with self._writing:
            for count in (CALLS_AHEAD, 1):
                own = self.spending
                usd = max(own.covered_usd, own.committed_usd + count * worst_usd)
                calls = max(own.covered_calls, own.calls + count)
                try:
                    if await self._write(usd, calls, self._days.caps):
                        return True
                except BusyError:  # written later: a full disk is no reason to refuse what needs none
                    if await self._cover_unwritten(usd, calls):
                        return True
        return False

    async def _cover_unwritten(self, usd: float, calls: float) -> bool:
        """Cover so much by reading alone: what other processes could not write either is not seen."""
        added, store = self._sum_used(usd, calls) - self._written, self._days.store
        try:
            if not await self._days.run_stored(lambda: store.fits(*self._key, added, self._days.caps)):
                return False
        except BusyError:
            reason = "today's usage cannot be looked up: the database is away"
            raise DaySpentError(reason, retry_after=RETRY_S) from None
        self.spending.covered_usd, self.spending.covered_calls = usd, calls
        return True

    def build_refusal(self) -> DaySpentError:
        """Build the error for a day that is used up."""
        caps = self._days.caps
        most = [] if caps.questions is None else [f"{caps.questions} questions"]
        most += [] if caps.usd is None else [f"${caps.usd:.2f}"]
        reason = f"a tenant may use {' and '.join(most)} a day (UTC), and today's are used up"
        return DaySpentError(reason, retry_after=self._days.until_tomorrow)

    async def flush(self) -> None:
        """Write what was used. Give back what is reserved if nothing is under way."""
        async with self._writing:
            usd, calls = self._sum_committed() if self.spending.is_idle else self._sum_covered()
            if self._sum_used(usd, calls) != self._written:
                self.spending.covered_usd, self.spending.covered_calls = usd, calls  # at once: it is given back
                await self._write(usd, calls, NO_CAPS)  # without caps, as it is used already

    def _sum_covered(self) -> tuple[float, float]:
        own = self.spending
        return (own.covered_usd, own.covered_calls) if own.backing else self._sum_committed()

    def _sum_committed(self) -> tuple[float, float]:
        own = self.spending
        if own.backing is None:
            return own.spent_usd + own.uncertain_usd, own.calls
        return own.committed_usd, own.calls

    async def _write(self, usd: float, calls: float, caps: Caps) -> bool:
        """Bring the database up to date, with so much covered; False if a cap forbids it."""
        used, store = self._sum_used(usd, calls), self._days.store
        added = used - self._written
        if not await self._days.run_stored(lambda: store.add(*self._key, added, caps)):
            return False
        self._written = used
        if self.spending.backing is not None:
            self.spending.covered_usd, self.spending.covered_calls = usd, calls
        return True

    def _sum_used(self, usd: float, calls: float) -> UsageAmount:
        own = self.spending
        return UsageAmount(
            questions=own.calls,
            held_questions=int(calls) - own.calls,
            cached=own.cached,
            tokens_in=own.tokens_in,
            tokens_out=own.tokens_out,
            cost_usd=own.spent_usd,
            uncertain_usd=own.uncertain_usd,
            held_usd=usd - own.spent_usd - own.uncertain_usd,
            unpriced=own.unpriced,
        )
