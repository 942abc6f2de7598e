"""One budget, and one gate per model, for workers on several machines: kept in one place, such as an actor of Ray."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from math import fsum
from uuid import uuid4

from typing_extensions import override

from service.asking.budget.reservations import Account, Cover, Spending
from service.asking.limits import Clock, ProviderGate
from service.errors import JudgeError


class SharedLimits:
    """The limits in the event loop where they are kept."""

    def __init__(
        self,
        make_gate: Callable[[], ProviderGate],
        cap_usd: float | None = None,
        *,
        lease_s: float,
        clock: Clock | None = None,
    ) -> None:
        """`cap_usd`: the budget; None: unlimited. `lease_s`: seconds after which a place is free that nobody gave back."""
        self._gates = defaultdict[str, ProviderGate](make_gate)
        self._clock = clock or Clock()
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

    async def enter(self, ticket: str, model: str, patience: float) -> int | JudgeError:
        """Wait for a place at a gate; return how many requests are under way, or why none may go out."""
        gate = self._gates[model]
        place = gate.hold(patience)
        try:
            await place.__aenter__()
        except JudgeError as error:
            return error
        self._places[ticket] = place, asyncio.create_task(self._expire(ticket))
        return gate.concurrency.in_flight

    async def _expire(self, ticket: str) -> None:
        await self._clock.sleep(self._lease_s)
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


class SharedGate(ProviderGate):
    """The shared gate of a model, as a worker sees it."""

    def __init__(self, limits: SharedLimits, model: str) -> None:
        super().__init__()
        self._limits = limits
        self._model = model

    @asynccontextmanager
    @override
    async def hold(self, patience: float, tenant: str = "") -> AsyncGenerator[None]:
        ticket, error = uuid4().hex, None
        entered = await self._limits.enter(ticket, self._model, patience)
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


class SharedBudget(Account):
    """What one worker spends of the shared budget: every call is held before it is made."""

    def __init__(self, limits: SharedLimits) -> None:
        super().__init__(ahead=1)
        self._limits = limits
        self._worker = uuid4().hex

    def get_spending(self, _: str) -> Spending:
        """Return the spending of the worker, which all its requests share."""
        return self

    @override
    async def hold(self, cover: Cover) -> bool:
        fits = await self._limits.hold(self._worker, cover.usd, False)
        if fits:
            self.cover(cover)
        return fits

    @override
    def build_refusal(self) -> JudgeError:
        return JudgeError("budget_exhausted", "the call may cost more than is left of the budget of all workers")

    async def close(self) -> None:
        """Give back what is held and was not spent."""
        if self.is_idle:
            self.cover(Cover(self.committed_usd, self.calls))
            await self._limits.hold(self._worker, self.committed_usd, True)
