"""A gate that admits many holders together, or one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class ExclusiveGate:
    """For one event loop. Whoever wants to be alone waits until nobody is inside, and nobody enters meanwhile."""

    def __init__(self) -> None:
        self._inside = 0
        self._waiting_alone = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def enter_together(self) -> AsyncGenerator[None]:
        """Enter together with all others who do."""
        if self._waiting_alone:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._waiting_alone)
                self._inside += 1
        else:
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._waiting_alone and not self._inside:
                async with self._changed:
                    self._changed.notify_all()

    @asynccontextmanager
    async def enter_alone(self) -> AsyncGenerator[None]:
        """Enter alone."""
        self._waiting_alone += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._inside)
                yield  # the lock is held, so only one enters even if several want to be alone
        finally:
            self._waiting_alone -= 1
            async with self._changed:
                self._changed.notify_all()
