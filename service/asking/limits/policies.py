"""How many requests a provider gets, and when: small policies over an injected clock, each with one idea.

They are used from one event loop and keep no lock: nothing awaits between a look and a change.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from itertools import chain
from typing import Protocol


class Clock(Protocol):
    """Time that passes: monotonic seconds."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits; no less than `seconds`."""
        ...


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)


class ConcurrencyLimit:
    """Requests under way at once, by additive increase and multiplicative decrease.

    Those who wait have turns by name: one of each, and of one name first come, first served. So a thousand questions of one
    tenant keep another's waiting for one answer, not for a thousand.

    Chiu and Jain, Analysis of the increase and decrease algorithms for congestion avoidance (1989). A request belongs to
    the epoch it began in: a burst of 429 to requests that were under way together halves the limit once.
    """

    def __init__(self, *, start: int = 16, most: int = 64) -> None:
        self._limit = float(min(start, most))
        self._most = most
        self._epoch = 0
        self._narrow = False
        self._queues: dict[str, deque[asyncio.Future[bool]]] = {}
        """By name, in the order of their turns."""
        self.in_flight = 0

    @property
    def limit(self) -> int:
        """Requests that may be under way now."""
        return 1 if self._narrow else int(self._limit)

    async def acquire(self, name: str = "") -> int | None:
        """Waits for a slot, which is then the caller's to release. The current epoch; None where there is none: see `wake`.

        `name`: whose turn it is that is waited for.
        """
        if self._queues or self.in_flight >= self.limit:
            return self._epoch if await self._wait_for_turn(name) else None
        self.in_flight += 1
        return self._epoch

    async def _wait_for_turn(self, name: str) -> bool:
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(name, deque()).append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.result():  # the slot was handed over in the same moment
                self.release()
            else:
                self._forget(name, turn)
            raise

    def _forget(self, name: str, turn: asyncio.Future[bool]) -> None:
        queue = self._queues.get(name, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._queues.pop(name, None)

    def wake(self) -> None:
        """Sends all who wait away without a slot, to see whether there is still anything to wait for."""
        waiting, self._queues = self._queues, {}
        for turn in chain.from_iterable(waiting.values()):
            if not turn.done():
                turn.set_result(False)

    def release(self) -> None:
        """Gives a slot back."""
        self.in_flight -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._queues and self.in_flight < self.limit:
            turn = self._pop_next()
            if turn.cancelled():  # its task has yet to wake
                continue
            self.in_flight += 1
            turn.set_result(True)

    def _pop_next(self) -> asyncio.Future[bool]:
        """Who has waited longest of the name whose turn it is; that name's next turn comes after all others'."""
        name = next(iter(self._queues))
        queue = self._queues.pop(name)
        turn = queue.popleft()
        if queue:
            self._queues[name] = queue
        return turn

    def grow(self, epoch: int) -> None:
        """An answer came: one more request at once for each round of them. One that began before a decrease tells nothing."""
        if epoch != self._epoch:
            return
        self._narrow = False
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._hand_out()

    def shrink(self, epoch: int, *, to_one: bool = False) -> None:
        """Too many at once: half of them. With `to_one`, a single one at a time until an answer to a later one comes."""
        if epoch == self._epoch and not self._narrow:
            self._limit = max(1.0, self._limit / 2)
        if to_one or epoch == self._epoch:
            self._epoch += 1
        self._narrow = self._narrow or to_one


class Cooldown:
    """A time in which no request goes out. A longer one replaces a shorter one, never the other way round."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = float("-inf")

    def extend(self, seconds: float) -> None:
        """No request for `seconds` from now."""
        self._until = max(self._until, self._clock.now() + seconds)

    def get_seconds_left(self) -> float:
        """Seconds that are left of it."""
        return max(0.0, self._until - self._clock.now())


class Breaker:
    """Stops asking a provider that is down (Nygard, Release It!, 2007: circuit breaker).

    Opens after `in_a_row` faults, or when more than half of the last `window` outcomes are faults. Open, it lets one probe
    through every `probe_every` seconds; a probe that is answered closes it. (Over 20 outcomes, a provider that fails three
    calls in ten would look like one that is down every few hundred calls.)
    """

    def __init__(self, clock: Clock, *, in_a_row: int = 10, window: int = 100, probe_every: float = 10.0) -> None:
        self._clock = clock
        self._in_a_row = in_a_row
        self._probe_every = probe_every
        self._faults: deque[bool] = deque(maxlen=window)
        self._row = 0
        self._next_probe: float | None = None  # None: closed
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether only probes are let through."""
        return self._next_probe is not None

    def get_seconds_left(self) -> float:
        """Seconds until a request may go out; 0.0 where one may now. While a probe is out: as if it failed now."""
        if self._next_probe is None:
            return 0.0
        return self._probe_every if self._probing else max(0.0, self._next_probe - self._clock.now())

    def admit(self) -> bool:
        """Takes up the next request, which must then be reported by one of the methods below. Whether it is a probe."""
        self._probing = self.is_open
        return self._probing

    def note_success(self) -> None:
        """An answer came, to whatever request."""
        self._faults.append(False)
        self._row = 0
        if self.is_open:
            self._next_probe, self._probing = None, False
            self._faults.clear()

    def note_failure(self, *, probe: bool) -> None:
        """A fault. Those of requests that were under way when it opened do not put the next probe off."""
        self._faults.append(True)
        self._row += 1
        if probe or (not self.is_open and self._is_due()):
            self._next_probe, self._probing = self._clock.now() + self._probe_every, False

    def note_abandonment(self, *, probe: bool) -> None:
        """The request was given up, and tells nothing. If it was a probe, another may go at once."""
        if probe:
            self._probing = False

    def _is_due(self) -> bool:
        full = len(self._faults) == self._faults.maxlen
        return self._row >= self._in_a_row or (full and 2 * sum(self._faults) > len(self._faults))


class RetryBudget:
    """Retries are at most a share of the calls of the last minute, so that an outage is not answered by a storm.

    `floor` retries a minute are free, so that single calls and small sets of them may be tried again too.
    """

    def __init__(self, clock: Clock, *, share: float = 0.1, floor: int = 100) -> None:
        self._calls = _LastMinute(clock)
        self._retries = _LastMinute(clock)
        self._share = share
        self._floor = floor

    def count_call(self) -> None:
        """A first attempt is made."""
        self._calls.add()

    def take(self) -> bool:
        """Whether a retry may be made; if so it is counted."""
        allowed = self._retries.total() < max(self._floor, self._share * self._calls.total())
        if allowed:
            self._retries.add()
        return allowed


class _LastMinute:
    """How often something happened in the last sixty seconds, by the second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: deque[list[int]] = deque()  # [second, count]

    def add(self) -> None:
        second = int(self._clock.now())
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append([second, 0])
        self._seconds[-1][1] += 1

    def total(self) -> int:
        oldest = int(self._clock.now()) - 60
        while self._seconds and self._seconds[0][0] <= oldest:
            self._seconds.popleft()
        return sum(count for _, count in self._seconds)
