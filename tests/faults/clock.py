"""A clock whose time passes only when somebody sleeps, or when a test says so."""

from __future__ import annotations

import asyncio


class Clock:
    """`naps` are the sleeps that were asked for. Unless `held`, a sleep moves the time on and is over at once."""

    def __init__(self, *, held: bool = False) -> None:
        self.time = 1_000.0
        self.held = held
        self.naps: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        if not self.held:
            self.time += seconds
            await asyncio.sleep(0)
            return
        waking = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.time + seconds, waking))
        await waking

    async def asleep(self, number: int) -> None:
        """Waits until that many sleep."""
        while sum(not waking.done() for _, waking in self._sleepers) < number:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    def advance(self, seconds: float) -> None:
        """Moves the time on and wakes those whose time has come."""
        self.time += seconds
        for due, waking in self._sleepers:
            if due <= self.time and not waking.done():
                waking.set_result(None)
