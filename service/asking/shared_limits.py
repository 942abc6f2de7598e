"""One budget, and one gate per model, for workers on several machines: kept in one place, such as an actor of Ray."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from math import fsum
from uuid import uuid4

from typing_extensions import override

from service.asking.budget.reservations import Spending
from service.asking.limits import ProviderGate, ProviderGates
from service.errors import JudgeError


class SharedLimits:
    """The limits in the event loop where they are kept."""

    def __init__(self, gates: ProviderGates, cap_usd: float | None = None, *, lease_s: float) -> None:
        """`cap_usd`: the budget; None: unlimited. `lease_s`: seconds after which a place is free that nobody gave back."""
        self._gates = gates
        self._cap_usd = cap_usd
        self._lease_s = lease_s
        self._held: dict[str, float] = {}
        self._places: dict[str, tuple[AbstractAsyncContextManager[None], asyncio.Task[None]]] = {}

    async def hold(self, worker: str, usd: float, settled: bool) -> bool:  # noqa: FBT001 (called from afar)
        """Let a worker commit to `usd` in all; False if that, with what the others hold, is above the budget.

        `settled`: it was spent, whatever the budget is. What a worker that died held stays held: it may have been spent.
        """
        others = fsum(held for name, held in self._held.items() if name != worker)
        fits = settled or self._cap_usd is None or others + usd <= self._cap_usd
        self._held |= {worker: usd} if fits else {}
        return fits

    async def enter(self, ticket: str, model: str, account: str, patience: float) -> int | JudgeError:
        """Wait for a place at a gate; return how many requests are under way, or why none may go out."""
        gate = self._gates.get(model, account)
        place = gate.hold(patience)
        try:
            await place.__aenter__()
        except JudgeError as error:
            return error
        self._places[ticket] = place, asyncio.create_task(self._expire(ticket))
        return gate.concurrency.in_flight

    async def _expire(self, ticket: str) -> None:
        await self._gates.clock.sleep(self._lease_s)
        await _exit(self._places.pop(ticket)[0], asyncio.CancelledError())

    async def leave(self, ticket: str, error: BaseException | None) -> None:
        """Give a place back, with the outcome of the request."""
        if ticket in self._places:
            place, lease = self._places.pop(ticket)
            lease.cancel()
            await _exit(place, error)


async def _exit(place: AbstractAsyncContextManager[None], error: BaseException | None) -> None:
    with suppress(JudgeError, asyncio.CancelledError):
        await place.__aexit__(type(error) if error else None, error, None)


class SharedGates(ProviderGates):
    """The shared gates, as a worker sees them."""

    def __init__(self, limits: SharedLimits) -> None:
        super().__init__()
        self._limits = limits

    @override
    def get(self, model: str, account: str) -> ProviderGate:
        return _SharedGate(self, self._limits, model, account)


class _SharedGate(ProviderGate):
    def __init__(self, gates: ProviderGates, limits: SharedLimits, *place: str) -> None:
        super().__init__(gates.clock)
        self._limits = limits
        self._model, self._account = place

    @asynccontextmanager
    @override
    async def hold(self, patience: float, tenant: str = "") -> AsyncGenerator[None]:
        ticket, error = uuid4().hex, None
        entered = await self._limits.enter(ticket, self._model, self._account, patience)
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
    """What one worker spends of the shared budget: every call is held before it is made."""

    def __init__(self, limits: SharedLimits) -> None:
        self._limits = limits
        self._worker = uuid4().hex
        self.spending = Spending()
        self.spending.backing = self

    def get_spending(self, _: str) -> Spending:
        """Return the spending of the worker, which all its requests share."""
        return self.spending

    async def advance(self, worst_usd: float) -> bool:
        """Hold one more call."""
        usd = max(self.spending.covered_usd, self.spending.committed_usd + worst_usd)
        fits = await self._limits.hold(self._worker, usd, False)
        self.spending.covered_usd = usd if fits else self.spending.covered_usd
        return fits

    def build_refusal(self) -> JudgeError:
        """Build the error for a call that the budget leaves no room for."""
        return JudgeError("budget_exhausted", "the call may cost more than is left of the budget of all workers")

    async def close(self) -> None:
        """Give back what is held and was not spent."""
        if self.spending.is_idle:
            self.spending.covered_usd = self.spending.committed_usd
            await self._limits.hold(self._worker, self.spending.covered_usd, True)
