"""Single flight: callers who want the same thing at the same time wait for one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.errors import CallgradeError

T = TypeVar("T")


class LostWorkError(CallgradeError):
    """The work was cancelled from within, while callers still waited for it."""

    retryable = True


@dataclass(slots=True, eq=False)
class _SharedWork(Generic[T]):
    task: asyncio.Task[T]
    waiters: int = 0


class SingleFlight(Generic[T]):
    """Work under way, by key. Nothing is remembered once it has ended: neither a result nor an error.

    The work runs in a task of its own, so that no caller's end is its end; it is cancelled when no caller is left. It
    starts with no context variables: what it does for all must not carry the name of one of them. All in one event loop.
    """

    def __init__(self) -> None:
        self._flights: dict[str, _SharedWork[T]] = {}
        self._tasks: set[asyncio.Task[T]] = set()  # the loop itself holds tasks weakly

    def __len__(self) -> int:
        """How many pieces of work are under way."""
        return len(self._flights)

    async def run_once(self, key: str, make: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """What `make` gives, and whether another caller had already set it going.

        An error of `make` reaches every caller who waits, as the same object. Raises LostWorkError if the work is
        cancelled by anyone but its callers. Work that asks for its own key waits for itself, for ever.
        """
        flight = self._flights.get(key)
        coalesced = flight is not None
        if flight is None:
            flight = self._flights[key] = _SharedWork(self._start(key, make))
        flight.waiters += 1
        try:
            await asyncio.wait([flight.task])  # unlike awaiting the task, this leaves it alone when cancelled
        finally:
            flight.waiters -= 1
            if not flight.waiters:
                self._leave(key, flight)
        if flight.task.cancelled():
            raise LostWorkError("the work that was waited for has been cancelled")
        return flight.task.result(), coalesced

    def _start(self, key: str, make: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(self._run(key, make), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._drop_task)
        return task

    async def _run(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        try:
            return await make()
        finally:
            # Here and not when the task is seen to have ended: nobody may join work whose outcome is settled.
            self._forget(key, asyncio.current_task())

    def _leave(self, key: str, flight: _SharedWork[T]) -> None:
        """The last caller goes: whoever comes now starts anew and does not join work that is being cancelled."""
        self._forget(key, flight.task)
        flight.task.cancel()  # does nothing to work that has ended

    def _forget(self, key: str, task: asyncio.Task[T] | None) -> None:
        found = self._flights.get(key)
        if found is not None and found.task is task:
            del self._flights[key]

    def _drop_task(self, task: asyncio.Task[T]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain where every caller has gone
