"""One budget, and one gate per model, for the workers of several machines: kept in one place, which each worker asks.

The place is an actor of Ray in `service.cli.on_ray`; nothing here knows Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from math import fsum
from typing import Protocol
from uuid import uuid4

from typing_extensions import override

from service.asking.budget.reservations import Spending
from service.asking.limits import Clock, ProviderGate, ProviderGates
from service.errors import JudgeError


class Limits(Protocol):
    """The limits, as a worker reaches them."""

    async def hold(self, worker: str, usd: float, *, settled: bool = False) -> bool:
        """Let a worker commit to `usd` in all; False if that, with what the others hold, is above the budget.

        `settled`: it has spent as much, whatever the budget is. What a worker that died held stays held: it may be spent.
        """
        ...

    async def enter(self, ticket: str, model: str, account: str, patience: float) -> int | JudgeError:
        """Wait for a place at the gate; return how many requests are under way, or why none may go out."""
        ...

    async def leave(self, ticket: str, error: BaseException | None = None) -> None:
        """Give the place back, with the outcome of the request."""
        ...


class SharedLimits:
    """The limits in the place where they are kept, in one event loop."""

    def __init__(self, gates: ProviderGates, cap_usd: float | None = None, *, lease_s: float) -> None:
        """`cap_usd`: the budget; None: unlimited. `lease_s`: seconds after which a place is free if its worker died."""
        self._gates = gates
        self._cap_usd = cap_usd
        self._lease_s = lease_s
        self._held: dict[str, float] = {}
        self._places: dict[str, tuple[AbstractAsyncContextManager[None], asyncio.Task[None]]] = {}

    async def hold(self, worker: str, usd: float, *, settled: bool = False) -> bool:
        """As in `Limits`."""
        others = fsum(held for name, held in self._held.items() if name != worker)
        fits = settled or self._cap_usd is None or others + usd <= self._cap_usd
        if fits:
            self._held[worker] = usd
        return fits

    async def enter(self, ticket: str, model: str, account: str, patience: float) -> int | JudgeError:
        """As in `Limits`."""
        gate = self._gates.get(model, account)
        place = gate.hold(patience)
        try:
            await place.__aenter__()
        except JudgeError as error:
            return error
        self._places[ticket] = place, asyncio.create_task(self._expire(ticket))
        return gate.concurrency.in_flight

    async def leave(self, ticket: str, error: BaseException | None = None) -> None:
        """As in `Limits`."""
        place, lease = self._places.pop(ticket, (None, None))
        if place is not None and lease is not None:
            lease.cancel()
            await _exit(place, error)

    async def _expire(self, ticket: str) -> None:
        await self._gates.clock.sleep(self._lease_s)
        place, _ = self._places.pop(ticket)
        await _exit(place, asyncio.CancelledError())


async def _exit(place: AbstractAsyncContextManager[None], error: BaseException | None) -> None:
    with suppress(JudgeError, asyncio.CancelledError):
        await place.__aexit__(type(error) if error else None, error, None)


class SharedGates(ProviderGates):
    """The shared gates, as a worker sees them."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    @override
    def get(self, model: str, account: str) -> ProviderGate:
        return _SharedGate(self.clock, self._limits, model, account)


class _SharedGate(ProviderGate):
    def __init__(self, clock: Clock, limits: Limits, model: str, account: str) -> None:
        super().__init__(clock)
        self._limits = limits
        self._place = model, account

    @asynccontextmanager
    @override
    async def hold(self, patience: float, tenant: str = "") -> AsyncGenerator[None]:
        ticket, error = uuid4().hex, None
        entered = await self._limits.enter(ticket, *self._place, patience)
        if isinstance(entered, JudgeError):
            raise entered
        self.concurrency.in_flight = entered
        try:
            yield
        except BaseException as raised:
            error = raised if isinstance(raised, JudgeError) else asyncio.CancelledError()
            raise
        finally:
            await self._limits.leave(ticket, error)


class SharedBudget:
    """What one worker spends of the budget: each call is held before it is made."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._worker = uuid4().hex
        self._spending = Spending()
        self._spending.backing = self

    def get_spending(self, tenant: str) -> Spending:  # noqa: ARG002 (one budget for all)
        """Return what the worker spends for all its requests."""
        return self._spending

    async def advance(self, worst_usd: float) -> bool:
        """Hold one more call."""
        own = self._spending
        usd = max(own.covered_usd, own.committed_usd + worst_usd)
        if not await self._limits.hold(self._worker, usd):
            return False
        own.covered_usd = usd
        return True

    def build_refusal(self) -> JudgeError:
        """Build the error for a call that the budget leaves no room for."""
        return JudgeError(
            "budget_exhausted", "the call may cost more than is left of the budget that all workers share"
        )

    async def close(self) -> None:
        """Give back what is held and was not spent."""
        own = self._spending
        if own.is_idle:
            own.covered_usd = own.committed_usd
            await self._limits.hold(self._worker, own.covered_usd, settled=True)
