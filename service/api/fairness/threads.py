"""Threads that tenants share: each has its turn, whatever another one has put before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from service.api.fairness.turns import Turns

T = TypeVar("T")


class Threads:
    """So many threads, and turns at them by name. Work that has begun is done to its end, also where nobody waits for it."""

    def __init__(self, most: int, *, name: str) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)
        self._turns = Turns(most)

    async def run(self, name: str, work: Callable[[], T], *, cost: float = 1.0) -> T:
        """What `work` gives, once it is the turn of `name`."""
        await self._turns.take(name, cost=cost)
        loop = asyncio.get_running_loop()

        def give_back(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits for a turn any more
                loop.call_soon_threadsafe(self._turns.give, name)

        future = self._pool.submit(work)
        future.add_done_callback(give_back)
        return await asyncio.wrap_future(future)
