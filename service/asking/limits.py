"""Limits on how many requests a provider gets, and when: small policies over a clock, and the gate that applies them.

They are used from one event loop and need no lock: nothing awaits between reading and changing a value. They hold for one
process.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from service.asking.faults import MAX_PAUSE_S, CallError, NotSentError, is_outage, is_rate_limit
from service.errors import JudgeError


class Clock:
    """The monotonic clock of this machine, in seconds."""

    def now(self) -> float:
        """Return the seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep for at least `seconds`."""
        await asyncio.sleep(seconds)


class ConcurrencyLimit:
    """Limits the requests under way at once, by additive increase and multiplicative decrease.

    Waiting callers take turns by name: one of each name in turn, and within a name in order of arrival. So a thousand questions
    of one tenant delay another's by one answer, not by a thousand.

    Chiu and Jain, Analysis of the increase and decrease algorithms for congestion avoidance (1989). A request belongs to
    the epoch it began in: a burst of 429 to requests that were under way together halves the limit once.
    """

    def __init__(self, *, start: int = 16, most: int = 64) -> None:
        self._limit = float(min(start, most))
        self._most = most
        self._epoch = 0
        self._one_at_a_time = False
        self._queues: dict[str, deque[asyncio.Future[bool]]] = {}  # by name, in the order of their turns
        self.in_flight = 0

    @property
    def limit(self) -> int:
        """How many requests may be under way now."""
        return 1 if self._one_at_a_time else int(self._limit)

    async def acquire(self, name: str = "") -> int | None:
        """Wait for the turn of `name`, and take a place, which the caller must release.

        Return the current epoch; None if there is no place: see `wake`.
        """
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(name, deque()).append(turn)
        self._hand_out()
        try:
            return self._epoch if await turn else None
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.result():  # the place was handed over at the same moment
                self.release()
            raise

    def wake(self, name: str | None = None) -> None:
        """Send away those who wait (all, or those of a name) without a place: they check whether to wait at all."""
        for one in list(self._queues) if name is None else [name]:
            for turn in self._queues.pop(one, ()):
                if not turn.done():
                    turn.set_result(False)

    def release(self) -> None:
        """Give a place back."""
        self.in_flight -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._queues and self.in_flight < self.limit:
            name = next(iter(self._queues))
            queue = self._queues.pop(name)
            turn = queue.popleft()
            if queue:
                self._queues[name] = queue  # behind all others
            if not turn.cancelled():
                self.in_flight += 1
                turn.set_result(True)

    def grow(self, epoch: int) -> None:
        """Count an answer: one more request at once per round of answers. Ignores requests from before a decrease."""
        if epoch != self._epoch:
            return
        self._one_at_a_time = False
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._hand_out()

    def shrink(self, epoch: int, *, to_one: bool = False) -> None:
        """Halve the limit: there were too many at once. With `to_one`, allow one at a time until a later request is answered."""
        if epoch == self._epoch and not self._one_at_a_time:
            self._limit = max(1.0, self._limit / 2)
        if to_one or epoch == self._epoch:
            self._epoch += 1
        self._one_at_a_time = self._one_at_a_time or to_one


FAULTS_IN_A_ROW = 10
"""Faults after which a provider counts as down."""

PROBE_EVERY_S = 10.0


class Breaker:
    """Stops requests to a provider that is down (Nygard, Release It!, 2007: circuit breaker).

    Opens after some faults in a row. While open, it admits one probe at a time; one that is answered closes it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._row = 0
        self._next_probe: float | None = None  # None: closed
        self._probing = False
        self.why: JudgeError | None = None
        """The last fault."""

    @property
    def is_open(self) -> bool:
        """Whether only probes are admitted."""
        return self._next_probe is not None

    def get_seconds_left(self) -> float:
        """Return the seconds until a request may go out; 0.0 if one may now. While a probe is out: as if it failed now."""
        if self._next_probe is None:
            return 0.0
        return PROBE_EVERY_S if self._probing else max(0.0, self._next_probe - self._clock.now())

    def admit(self) -> bool:
        """Admit the next request, which must then be reported by a method below; return whether it is a probe."""
        self._probing = self.is_open
        return self._probing

    def note_success(self) -> None:
        """Record an answer, to whatever request."""
        self._row, self._next_probe, self._probing = 0, None, False

    def note_failure(self, why: JudgeError, *, probe: bool) -> None:
        """Record a fault. Faults of requests from before the breaker opened do not delay the next probe."""
        self.why = why
        self._row += 1
        if probe or (not self.is_open and self._row >= FAULTS_IN_A_ROW):
            self.open(why, PROBE_EVERY_S)

    def open(self, why: JudgeError, seconds: float) -> None:
        """Admit nothing before a probe in `seconds`."""
        self.why, self._next_probe, self._probing = why, self._clock.now() + seconds, False

    def note_abandonment(self, *, probe: bool) -> None:
        """Record that a request was given up, which says nothing. If it was a probe, another may go at once."""
        self._probing = self._probing and not probe


# The gate.


class _GateTicket(NamedTuple):
    tenant: str
    epoch: int
    probe: bool


class ProviderGate:
    """What all callers of one model share in this process.

    Each tenant has a breaker, so what its questions do to a provider stops no others; a refused key opens it
    too. Only a pause that the provider asks for, or a used-up quota, stops all. Nothing stops anybody for longer than
    `longest_pause` seconds.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        concurrency: ConcurrencyLimit | None = None,
        longest_pause: float = MAX_PAUSE_S,
    ) -> None:
        self.clock = clock or Clock()
        self.concurrency = concurrency or ConcurrencyLimit()
        self._paused_until = float("-inf")
        self.breakers: defaultdict[str, Breaker] = defaultdict(partial(Breaker, self.clock))
        """By tenant."""
        self._for_all = Breaker(self.clock)
        self._longest_pause = longest_pause

    @asynccontextmanager
    async def hold(self, patience: float, tenant: str = "") -> AsyncGenerator[None]:
        """Hold a place for one request inside the block; an error that the block raises is the outcome of the request.

        Waits for a place as long as it takes, in turn with other tenants, and for pauses up to `patience` seconds, but never
        longer than the longest pause. Raises NotSentError if a pause is longer, the breaker is open or the key is closed.
        """
        ticket = await self._enter(patience, tenant)
        try:
            yield
        except JudgeError as error:
            self._note_fault(ticket, error)
            raise
        except BaseException:  # probably a cancellation
            self.breakers[tenant].note_abandonment(probe=ticket.probe)
            raise
        else:
            self.concurrency.grow(ticket.epoch)
            self.breakers[tenant].note_success()
        finally:
            self.concurrency.release()

    def pause(self, seconds: float) -> None:
        """Let no request out for `seconds`. A longer pause replaces a shorter one, never the reverse."""
        self._paused_until = max(self._paused_until, self.clock.now() + seconds)

    async def _enter(self, patience: float, tenant: str) -> _GateTicket:
        patience, breaker = max(0.0, min(patience, self._longest_pause)), self.breakers[tenant]
        while True:
            for stop in (self._for_all, breaker):
                if stop.why and (left := stop.get_seconds_left()):
                    raise _build_refusal(left, stop.why)
            if (left := self._paused_until - self.clock.now()) > 0:
                if left > patience:
                    reason = f"the provider asked for a pause of {left:.0f} s"
                    raise NotSentError("provider_error", reason, retry_after=left)
                patience -= left
                await self.clock.sleep(left)
                continue
            epoch = await self.concurrency.acquire(tenant)
            if epoch is None:
                continue
            if self._paused_until <= self.clock.now() and not (
                self._for_all.get_seconds_left() or breaker.get_seconds_left()
            ):
                return _GateTicket(tenant, epoch, breaker.admit())
            self.concurrency.release()  # the state has changed while it queued

    def _note_fault(self, ticket: _GateTicket, error: JudgeError) -> None:
        breaker = self.breakers[ticket.tenant]
        if isinstance(error, NotSentError) or error.cause == "budget_exhausted":  # no request was made after all
            breaker.note_abandonment(probe=ticket.probe)
            return
        if is_outage(error) or error.cause == "unauthorized":
            if isinstance(error, CallError) and error.status == 503:  # all its slots are in use
                self.concurrency.shrink(ticket.epoch)
            is_news = ticket.probe or not breaker.is_open
            if error.cause == "unauthorized" and is_news:
                breaker.open(error, self._longest_pause)
            else:
                breaker.note_failure(error, probe=ticket.probe)
            if breaker.is_open and is_news:
                self.concurrency.wake(ticket.tenant)
            return
        breaker.note_success()  # it answered, even if not as hoped
        if error.cause == "quota_exhausted" or (isinstance(error, CallError) and error.pause_cut):
            self._for_all.open(error, self._longest_pause)
            self.concurrency.wake()
            self.concurrency.shrink(ticket.epoch, to_one=True)
        elif is_rate_limit(error):
            seconds = min(error.retry_after or 0.0, self._longest_pause)
            self.pause(seconds)
            self.concurrency.shrink(ticket.epoch, to_one=bool(seconds))
        else:
            self.concurrency.grow(ticket.epoch)


def _build_refusal(left: float, why: JudgeError) -> NotSentError:
    cause = "provider_error" if why.cause == "timeout" else why.cause
    return NotSentError(cause, f"{why.reason}; not asked again for {left:.0f} s", retry_after=left)
