"""Threads that tenants share: each gets its turn, however much another has queued."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from service.api.fairness.turns import Turns

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
