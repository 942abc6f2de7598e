"""The way to one model with one key: its concurrency limit, its cooldown and its breakers, in the order requests meet them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from service.asking.failures import MAX_PAUSE_S
from service.asking.faults import NotSentError, is_outage, is_rate_limit, wants_long_pause
from service.asking.limits.policies import Breaker, Clock, ConcurrencyLimit, Cooldown, SystemClock
from service.asking.limits.shared import Halt, RedisGate
from service.errors import JudgeError


class _GateTicket(NamedTuple):
    tenant: str
    epoch: int
    probe: bool
    lease: str


class ProviderGate:
    """What all callers of one model with one key share: those of this process, and through `shared` those of others.

    Each tenant has a breaker in each process, so what its questions do to a provider stops no others; a refused key opens it
    too. Only a pause that the provider asks for, or a used-up quota, stops all. Nothing stops anybody for longer than
    `longest_pause` seconds.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        concurrency: ConcurrencyLimit | None = None,
        longest_pause: float = MAX_PAUSE_S,
        shared: RedisGate | None = None,
    ) -> None:
        self.shared = shared
        self._clock = clock
        self._longest_pause = longest_pause
        self.concurrency = concurrency or ConcurrencyLimit()
        self.cooldown = Cooldown(clock)
        self.breakers: defaultdict[str, Breaker] = defaultdict(partial(Breaker, clock))
        """By tenant."""
        self._closed = Cooldown(clock)
        self._why: JudgeError | None = None  # it was closed

    @asynccontextmanager
    async def hold(self, patience: float, tenant: str = "") -> AsyncGenerator[None]:
        """Hold a place for one request inside the block; an error that the block raises is the outcome of the request.

        Waits for a place as long as it takes, in turn with other tenants, and for cooldowns up to `patience` seconds, but never
        longer than the longest pause. Raises NotSentError if a cooldown is longer, the breaker is open or the key is closed.
        """
        ticket = await self._enter(patience, tenant)
        news: Halt | None = None
        try:
            yield
        except JudgeError as error:
            news = self._note_fault(ticket, error)
            raise
        except BaseException:  # probably a cancellation
            self.breakers[tenant].note_abandonment(probe=ticket.probe)
            raise
        else:
            self.concurrency.grow(ticket.epoch)
            self.breakers[tenant].note_success()
        finally:
            try:
                if self.shared is not None:
                    await self.shared.leave(ticket.lease, news)
            finally:
                self.concurrency.release()

    async def _enter(self, patience: float, tenant: str) -> _GateTicket:
        patience = min(patience, self._longest_pause)
        while True:
            self._refuse_if_shut(tenant)
            left = self.cooldown.get_seconds_left()
            if left > max(0.0, patience):
                raise NotSentError(
                    "provider_error", f"the provider asked for a pause of {left:.0f} s", retry_after=left
                )
            if left > 0:
                patience -= left
                await self._clock.sleep(left)
                continue
            epoch = await self.concurrency.acquire(tenant)
            if epoch is None:
                continue
            ticket = None
            try:
                ticket = await self._admit(epoch, tenant)
            finally:
                if ticket is None:
                    self.concurrency.release()
            if ticket is not None:
                return ticket

    async def _admit(self, epoch: int, tenant: str) -> _GateTicket | None:
        """Admit a request; None if the state has changed while it queued."""
        if not self._is_free(tenant):
            return None
        answer = "" if self.shared is None else await self.shared.enter()
        if isinstance(answer, Halt):
            self._adopt(answer, epoch)
            return None
        if self.shared is not None and not self._is_free(tenant):
            await self.shared.leave(answer, None)
            return None
        return _GateTicket(tenant, epoch, self.breakers[tenant].admit(), answer)

    def _adopt(self, halt: Halt, epoch: int) -> None:
        """Adopt what another process has learnt."""
        seconds = min(halt.seconds, self._longest_pause)
        if halt.kind == "pause":
            self.cooldown.extend(seconds)
            self.concurrency.shrink(epoch, to_one=True)
            return
        self._shut(halt.why, seconds)

    def _is_free(self, tenant: str) -> bool:
        stops = (self.cooldown, self._closed, self.breakers[tenant])
        return not any(stop.get_seconds_left() for stop in stops)

    def _refuse_if_shut(self, tenant: str) -> None:
        """Raise NotSentError if no request may go out and waiting is useless."""
        breaker = self.breakers[tenant]
        for left, why in ((self._closed.get_seconds_left(), self._why), (breaker.get_seconds_left(), breaker.why)):
            if left and why:
                raise _build_refusal(left, why)

    def _note_fault(self, ticket: _GateTicket, error: JudgeError) -> Halt | None:
        """Record a fault; return what other processes should know of it."""
        breaker = self.breakers[ticket.tenant]
        if isinstance(error, NotSentError) or error.cause == "budget_exhausted":  # no request was made after all
            breaker.note_abandonment(probe=ticket.probe)
            return None
        if is_outage(error) or error.cause == "unauthorized":
            self._note_outage(breaker, ticket, error)
            return None
        breaker.note_success()  # it answered, even if not as hoped
        if error.cause == "quota_exhausted" or wants_long_pause(error):
            self._shut(error, self._longest_pause)
            self.concurrency.shrink(ticket.epoch, to_one=True)
            return Halt("closed", self._longest_pause, error)
        if is_rate_limit(error):
            seconds = min(error.retry_after or 0.0, self._longest_pause)
            self.cooldown.extend(seconds)
            self.concurrency.shrink(ticket.epoch, to_one=bool(seconds))
            return Halt("pause", seconds, error)
        self.concurrency.grow(ticket.epoch)
        return None

    def _shut(self, why: JudgeError, seconds: float) -> None:
        """Allow no request for so long, and send away those who wait for a place."""
        self._why = why
        self._closed.extend(seconds)
        self.concurrency.wake()

    def _note_outage(self, breaker: Breaker, ticket: _GateTicket, error: JudgeError) -> None:
        was_open = breaker.is_open
        if error.cause == "unauthorized" and (ticket.probe or not was_open):
            breaker.open(error, self._longest_pause)
        else:
            breaker.note_failure(error, probe=ticket.probe)
        if breaker.is_open and (ticket.probe or not was_open):
            self.concurrency.wake(ticket.tenant)


def _build_refusal(left: float, why: JudgeError) -> NotSentError:
    cause = "provider_error" if why.cause == "timeout" else why.cause
    return NotSentError(cause, f"no request for {left:.0f} s after: {why.reason}", retry_after=left)


class ProviderGates:
    """The gates of a process, made on first use.

    `shared` returns what a gate shares with other processes, by model and account; None: nothing.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        make: Callable[[Clock], ProviderGate] = ProviderGate,
        shared: Callable[[str, str], RedisGate] | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self._make = make
        self._shared = shared
        self._gates: dict[tuple[str, str], ProviderGate] = {}

    def get(self, model: str, account: str) -> ProviderGate:
        """Return the gate of a model and an account. `account` identifies the key, and must not be the key itself."""
        place = (model, account)
        if place not in self._gates:
            gate = self._gates[place] = self._make(self.clock)
            gate.shared = self._shared(*place) if self._shared else gate.shared
        return self._gates[place]
