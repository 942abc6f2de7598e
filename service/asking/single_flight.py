"""Single flight: callers that want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.errors import CallgradeError

T = TypeVar("T")


class LostWorkError(CallgradeError):
    """The work was cancelled from within, while callers were still waiting for it."""

    retryable = True


@dataclass(slots=True, eq=False)
class _SharedWork(Generic[T]):
    task: asyncio.Task[T]
    waiters: int = 0


class SingleFlight(Generic[T]):
    """Work under way, by key. Nothing is kept once it has ended: neither a result nor an error.

    The work runs in a task of its own, so that it outlives any single caller; it is cancelled when no caller is left. Use from
    one event loop.
    """

    def __init__(self) -> None:
        self._work: dict[str, _SharedWork[T]] = {}

    def __len__(self) -> int:
        """Return how many pieces of work are under way."""
        return len(self._work)

    async def run_once(self, key: str, make: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the result of `make`, and whether another caller had already started it.

        An error of `make` reaches every waiting caller, as the same object. Raises LostWorkError if anyone but its callers
        cancels the work. Work that asks for its own key deadlocks.
        """
        shared = self._work.get(key)
        coalesced = shared is not None
        if shared is None:
            shared = self._work[key] = _SharedWork(asyncio.create_task(self._run(key, make)))
            # Retrieved, so that asyncio does not complain of an error if every caller has gone.
            shared.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        shared.waiters += 1
        try:
            await asyncio.wait([shared.task])  # unlike awaiting the task, this leaves it alone when cancelled
        finally:
            shared.waiters -= 1
            if not shared.waiters:
                # New callers start afresh rather than join work that is being cancelled.
                self._forget(key, shared.task)
                shared.task.cancel()  # no effect on work that has ended
        if shared.task.cancelled():
            raise LostWorkError("the work that was waited for has been cancelled")
        return shared.task.result(), coalesced

    async def _run(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        try:
            return await make()
        finally:
            # Here rather than when the task has ended: nobody may join work whose outcome is settled.
            self._forget(key, asyncio.current_task())

    def _forget(self, key: str, task: asyncio.Task[T] | None) -> None:
        found = self._work.get(key)
        if found is not None and found.task is task:
            del self._work[key]
