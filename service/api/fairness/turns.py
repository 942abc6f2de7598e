"""Turns at a few places: the name that has used the least goes next. Threads that take turns by name."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, TypeVar

from service.api.fairness.shares import Shares

MAX_ACCOUNTS = 1_000
"""Most accounts that are kept while nobody waits; without work there are none."""


class _TurnTicket(NamedTuple):
    granted: asyncio.Future[None]
    cost: float


class Turns:
    """Weighted fair queueing by name, in one event loop.

    Each name has an account of what its turns cost, and the name with the lowest account goes next. A name that is new,
    or returns, starts where the others are. So a thousand turns of one name, or one long turn, cost another name a
    single wait. A name holds as many places as `Shares` lets it, so one is free for a newcomer.
    """

    def __init__(self, places: int) -> None:
        self._places = Shares(places)
        self._waiting: dict[str, deque[_TurnTicket]] = {}
        self._accounts: dict[str, float] = {}
        self._level = 0.0

    def take_now(self, name: str, *, cost: float = 1.0) -> bool:
        """Take a turn if one is free for this name, and return whether it was."""
        if name in self._waiting or not self._places.take(name):
            return False
        self._enter(name)
        self._charge(name, cost)
        return True

    async def take(self, name: str, *, cost: float = 1.0) -> None:
        """Wait for a turn. `cost` is what it will take, in any unit that all callers share."""
        if self.take_now(name, cost=cost):
            return
        ticket = _TurnTicket(asyncio.get_running_loop().create_future(), cost)
        self._join_queue(name).append(ticket)
        try:
            await ticket.granted
        except asyncio.CancelledError:
            if not ticket.granted.cancelled():  # the turn was granted at the same moment
                self.give(name)
            raise

    def give(self, name: str) -> None:
        """End a turn, and grant those it makes room for."""
        self._places.give(name)
        while (following := self._find_next()) is not None:
            self._grant(following)
        if not self._waiting and (not self._places.total or len(self._accounts) > MAX_ACCOUNTS):
            self._accounts, self._level = {}, 0.0

    def _join_queue(self, name: str) -> deque[_TurnTicket]:
        if name not in self._waiting:
            self._enter(name)
            self._waiting[name] = deque()
        return self._waiting[name]

    def _find_next(self) -> str | None:
        for name in [*self._waiting]:
            self._drop_gone(name)
        ready = [name for name in self._waiting if self._places.count_room(name) > 0]
        return min(ready, key=self._accounts.__getitem__, default=None)

    def _drop_gone(self, name: str) -> None:
        """Drop tickets that nobody waits for any more, and the queue once it is empty."""
        queue = self._waiting[name]
        while queue and queue[0].granted.done():
            queue.popleft()
        if not queue:
            del self._waiting[name]

    def _grant(self, name: str) -> None:
        ticket = self._waiting[name].popleft()
        self._places.take(name)
        self._charge(name, ticket.cost)
        ticket.granted.set_result(None)

    def _enter(self, name: str) -> None:
        """Start a name that did not wait where the others are: idle time earns nothing."""
        self._accounts[name] = max(self._accounts.get(name, 0.0), self._level)

    def _charge(self, name: str, cost: float) -> None:
        self._level = max(self._level, self._accounts[name])
        self._accounts[name] += cost


T = TypeVar("T")


class Threads:
    """A number of threads, with turns by name. Work that has begun runs to its end, even if nobody waits for it."""

    def __init__(self, count: int, *, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._turns = Turns(count)

    async def run(self, name: str, work: Callable[[], T], *, cost: float = 1.0) -> T:
        """Run `work` once it is the turn of `name`, and return its result."""
        await self._turns.take(name, cost=cost)
        loop = asyncio.get_running_loop()

        def give_back(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits for a turn
                loop.call_soon_threadsafe(self._turns.give, name)

        future = self._pool.submit(work)
        future.add_done_callback(give_back)
        return await asyncio.wrap_future(future)
