"""Turns at a few places where much is to be done: whoever has had the least comes next, not whoever came first."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from service.api.fairness.shares import Shares

MOST = 1_000
"""Accounts that are kept where nobody waits; without work there are none."""


class _TurnTicket(NamedTuple):
    granted: asyncio.Future[None]
    cost: float


class Turns:
    """Weighted round robin by name. In one event loop.

    Each name has an account of what its turns cost. The name with the lowest account goes next; one that comes new, or again,
    starts where the others are. So a thousand turns of one name, or one long one, cost another name a single wait. A name holds
    as many places as `Shares` lets it, so that one is free for whoever comes.
    """

    def __init__(self, places: int) -> None:
        self._places = Shares(places)
        self._waiting: dict[str, deque[_TurnTicket]] = {}
        self._accounts: dict[str, float] = {}
        self._level = 0.0

    def take_now(self, name: str, *, cost: float = 1.0) -> bool:
        """Takes a turn where one is free for this name; says whether."""
        if name in self._waiting or not self._places.take(name):
            return False
        self._enter(name)
        self._charge(name, cost)
        return True

    async def take(self, name: str, *, cost: float = 1.0) -> None:
        """Waits for a turn. `cost` is what it will take, in any unit that all use."""
        if self.take_now(name, cost=cost):
            return
        ticket = _TurnTicket(asyncio.get_running_loop().create_future(), cost)
        self._join_queue(name).append(ticket)
        try:
            await ticket.granted
        except asyncio.CancelledError:
            if not ticket.granted.cancelled():  # the turn came in the same moment
                self.give(name)
            raise

    def give(self, name: str) -> None:
        """Ends a turn, which others may wait for."""
        self._places.give(name)
        while (following := self._find_next()) is not None:
            self._grant(following)
        if not self._waiting and (not self._places.total or len(self._accounts) > MOST):
            self._accounts, self._level = {}, 0.0

    def _join_queue(self, name: str) -> deque[_TurnTicket]:
        if name not in self._waiting:
            self._enter(name)
            self._waiting[name] = deque()
        return self._waiting[name]

    def _find_next(self) -> str | None:
        for name in [*self._waiting]:
            self._drop_gone(name)
        ready = [name for name in self._waiting if self._places.room(name) > 0]
        return min(ready, key=self._accounts.__getitem__, default=None)

    def _drop_gone(self, name: str) -> None:
        """Takes out those who do not wait any more, and the queue where it is empty."""
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
        """A name that did not wait starts where the others are: time without work earns nothing."""
        self._accounts[name] = max(self._accounts.get(name, 0.0), self._level)

    def _charge(self, name: str, cost: float) -> None:
        self._level = max(self._level, self._accounts[name])
        self._accounts[name] += cost
