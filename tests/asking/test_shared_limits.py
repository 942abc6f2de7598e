"""The budget and the gates that workers on several machines share: here in one event loop, as they are in their actor."""

from __future__ import annotations

import asyncio
import pickle
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.asking.budget.reservations import Spending
from service.asking.faults import CallError, NotSentError
from service.asking.limits import ConcurrencyLimit, ProviderGate
from service.asking.shared_limits import SharedBudget, SharedGate, SharedLimits
from service.core.judging.prompts import Usage
from service.errors import DaySpentError, JudgeError
from tests.faults.clock import Clock

UNIT = 1 / 64
"""Of a dollar: sums of it are exact."""


def build_limits(cap_usd: float | None = None, most: int = 2, clock: Clock | None = None) -> SharedLimits:
    def make() -> ProviderGate:
        return ProviderGate(clock, concurrency=ConcurrencyLimit(start=most, most=most))

    return SharedLimits(make, cap_usd, lease_s=60.0, clock=clock)


async def call(spending: Spending, worst: int | None, billed: int | None) -> bool:
    """Make a call; False if the budget refuses it."""
    worst_usd = None if worst is None else worst * UNIT
    try:
        await spending.wait_for_room(worst_usd)
        with spending.reserve(worst_usd) as reservation:
            await asyncio.sleep(0)
            if billed is not None:
                reservation.settle(Usage(cost_usd=min(billed, worst or 0) * UNIT))
    except JudgeError as error:
        return error.cause != "budget_exhausted"
    return True


CALLS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.none() | st.integers(0, 9)), max_size=30)


@given(CALLS, st.integers(0, 40))
def test_workers_together_never_pass_the_budget(calls: list[tuple[int, int, int | None]], cap: int) -> None:
    async def run() -> None:
        limits = build_limits(cap * UNIT)
        workers = [SharedBudget(limits) for _ in range(3)]
        done = await asyncio.gather(*[call(workers[worker], worst, billed) for worker, worst, billed in calls])
        spent = fsum(one.committed_usd for one in workers)
        assert spent <= cap * UNIT
        if cap >= sum(worst for _, worst, _ in calls):
            assert all(done)

    asyncio.run(run())


def test_what_a_worker_gives_back_is_there_for_the_others_and_what_a_dead_one_held_is_not() -> None:
    async def run() -> list[bool]:
        limits = build_limits(10 * UNIT)
        first, second, dead = (SharedBudget(limits) for _ in range(3))
        assert await dead.advance(4 * UNIT)  # and is never heard of again
        made = [await call(first, 6, 1), await call(second, 5, 5)]
        await first.close()
        made += [await call(second, 5, 5), await call(second, 1, 1)]
        return [*made, await call(second, None, None)]  # a price that is unknown is only counted

    assert asyncio.run(run()) == [True, False, True, False, True]


def test_requests_of_all_workers_are_counted_together() -> None:
    async def run() -> tuple[int, int]:
        limits, under_way, most = build_limits(most=3), 0, 0

        async def ask(gate: SharedGate) -> None:
            nonlocal under_way, most
            async with gate.hold(1.0):
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)
                under_way -= 1

        workers = SharedGate(limits, "m"), SharedGate(limits, "m")
        await asyncio.gather(*[ask(one) for one in workers * 20])
        return most, under_way

    assert asyncio.run(run()) == (3, 0)


def test_a_pause_that_a_provider_asks_one_worker_for_holds_for_all() -> None:
    async def run() -> None:
        limits = build_limits(clock=Clock(held=True))
        first, second = (SharedGate(limits, "m") for _ in range(2))
        with pytest.raises(CallError):
            async with first.hold(1.0):
                raise CallError("provider_error", "busy", status=429, retryable=True, retry_after=30.0)
        with pytest.raises(NotSentError, match="30 s"):
            async with second.hold(1.0):
                pass

    asyncio.run(run())


def test_the_place_of_a_worker_that_died_is_free_after_its_lease() -> None:
    async def run() -> object:
        clock = Clock(held=True)
        limits = build_limits(most=1, clock=clock)
        assert await limits.enter("dead", "m", 1.0) == 1
        waiting = asyncio.create_task(limits.enter("next", "m", 1.0))
        await clock.asleep(1)
        assert not waiting.done()
        clock.advance(60.0)
        return await waiting

    assert asyncio.run(run()) == 1


ERRORS = [
    JudgeError("timeout", "late", retryable=True, model="m"),
    CallError("provider_error", "busy", status=429, usage=Usage(cost_usd=1.0), retry_after=2.0, pause_cut=True),
    NotSentError("unreachable", "down"),
    DaySpentError("spent", retry_after=3.0),
]


@pytest.mark.parametrize("error", ERRORS)
def test_a_fault_arrives_whole_at_another_process(error: JudgeError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
