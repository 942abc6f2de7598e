"""A gate through which many go together, or one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class ExclusiveGate:
    """In one event loop. Who wants to be alone waits until nobody is inside, and nobody enters meanwhile."""

    def __init__(self) -> None:
        self._inside = 0
        self._wanted = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def enter_together(self) -> AsyncGenerator[None]:
        """With all others who enter so."""
        if self._wanted:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._wanted)
                self._inside += 1
        else:
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._wanted and not self._inside:
                async with self._changed:
                    self._changed.notify_all()

    @asynccontextmanager
    async def enter_alone(self) -> AsyncGenerator[None]:
        """With nobody else."""
        self._wanted += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._inside)
                yield  # the lock is held: of several who want to be alone one is
        finally:
            self._wanted -= 1
            async with self._changed:
                self._changed.notify_all()
