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
from service.errors import JudgeError


class _GateTicket(NamedTuple):
    tenant: str
    epoch: int
    probe: bool


class ProviderGate:
    """What all callers of one model with one key share in this process.

    Each tenant has a breaker, so what its questions do to a provider stops no others; a refused key opens it
    too. Only a pause that the provider asks for, or a used-up quota, stops all. Nothing stops anybody for longer than
    `longest_pause` seconds.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        concurrency: ConcurrencyLimit | None = None,
        longest_pause: float = MAX_PAUSE_S,
    ) -> None:
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
            breaker = self.breakers[tenant]
            if not any(stop.get_seconds_left() for stop in (self.cooldown, self._closed, breaker)):
                return _GateTicket(tenant, epoch, breaker.admit())
            self.concurrency.release()  # the state has changed while it queued

    def _refuse_if_shut(self, tenant: str) -> None:
        """Raise NotSentError if no request may go out and waiting is useless."""
        breaker = self.breakers[tenant]
        for left, why in ((self._closed.get_seconds_left(), self._why), (breaker.get_seconds_left(), breaker.why)):
            if left and why:
                raise _build_refusal(left, why)

    def _note_fault(self, ticket: _GateTicket, error: JudgeError) -> None:
        breaker = self.breakers[ticket.tenant]
        if isinstance(error, NotSentError) or error.cause == "budget_exhausted":  # no request was made after all
            breaker.note_abandonment(probe=ticket.probe)
            return
        if is_outage(error) or error.cause == "unauthorized":
            self._note_outage(breaker, ticket, error)
            return
        breaker.note_success()  # it answered, even if not as hoped
        if error.cause == "quota_exhausted" or wants_long_pause(error):
            self._why = error
            self._closed.extend(self._longest_pause)
            self.concurrency.wake()
            self.concurrency.shrink(ticket.epoch, to_one=True)
        elif is_rate_limit(error):
            seconds = min(error.retry_after or 0.0, self._longest_pause)
            self.cooldown.extend(seconds)
            self.concurrency.shrink(ticket.epoch, to_one=bool(seconds))
        else:
            self.concurrency.grow(ticket.epoch)

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
    """The gates of a process, made on first use."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        make: Callable[[Clock], ProviderGate] = ProviderGate,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self._make = make
        self._gates: dict[tuple[str, str], ProviderGate] = {}

    def get(self, model: str, account: str) -> ProviderGate:
        """Return the gate of a model and an account. `account` identifies the key, and must not be the key itself."""
        place = (model, account)
        if place not in self._gates:
            self._gates[place] = self._make(self.clock)
        return self._gates[place]
