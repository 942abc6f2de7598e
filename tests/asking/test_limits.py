"""The limits one by one, over a clock that stands still: slots, pauses, the gate, spending."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.asking.budget.reservations import Spending
from service.asking.faults import MAX_RETRY_AFTER_S, CallError, NotSentError, read_retry_after
from service.asking.limits import ConcurrencyLimit, ProviderGate
from service.core.judging.prompts import Usage
from service.errors import FaultCause, JudgeError
from tests.faults.clock import Clock


async def settle() -> None:
    """Lets every task run until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


def fault(status: int | None = 500, cause: FaultCause = "provider_error", **more: Any) -> CallError:
    return CallError(cause, "it went wrong", status=status, retryable=status in (None, 429, 500, 503), **more)


# Slots


async def take(slots: ConcurrencyLimit, number: int) -> list[int]:
    return [await slots.acquire() for _ in range(number)]


def test_names_take_turns_and_within_a_name_who_came_first() -> None:
    async def play() -> None:
        slots, order = ConcurrencyLimit(start=1), []

        async def use(number: int, name: str) -> None:
            await slots.acquire(name)
            order.append(f"{name}{number}")
            await settle()
            slots.release()

        await asyncio.gather(*[use(number, name) for number, name in enumerate("aaaaabbc")])
        assert order == ["a0", "a1", "b5", "c7", "a2", "b6", "a3", "a4"]
        assert (slots.in_flight, slots.limit) == (0, 1)

    asyncio.run(play())


def test_cancelling_who_waits_loses_no_slot() -> None:
    async def play() -> None:
        slots = ConcurrencyLimit(start=1)
        await slots.acquire()
        waiting = [asyncio.create_task(slots.acquire()) for _ in range(3)]
        await settle()
        waiting[0].cancel()
        slots.release()  # hands the slot to the second in the moment in which the first leaves
        waiting[1].cancel()
        await settle()
        assert [task.cancelled() for task in waiting] == [True, True, False]
        assert slots.in_flight == 1
        slots.release()
        assert slots.in_flight == 0

    asyncio.run(play())


# What ends the requests that were begun at once: the first, all, or a number of answers; then the limit.
LIMITS: list[tuple[str, int, list[tuple[str, int]], int]] = [
    ("half as many after a 429", 16, [("shrink", 1)], 8),
    ("a burst of 429 halves once", 16, [("shrink", 16)], 8),
    ("never less than one", 1, [("shrink", 1)], 1),
    ("answers from before a decrease tell nothing", 2, [("shrink", 1), ("grow", 50)], 1),
    ("one more for each round of answers", 16, [("grow", 18)], 17),
    ("never more than the most", 16, [("grow", 500)], 20),
    ("one at a time after a pause", 8, [("to_one", 1), ("grow", 8)], 1),
    ("until a later one is answered", 8, [("to_one", 1), ("again", 0), ("grow", 1)], 4),
]


@pytest.mark.parametrize(("start", "events", "limit"), [pytest.param(*row[1:], id=row[0]) for row in LIMITS])
def test_the_limit_follows_what_ends(start: int, events: list[tuple[str, int]], limit: int) -> None:
    async def play() -> ConcurrencyLimit:
        slots = ConcurrencyLimit(start=start, most=20)
        epochs = await take(slots, start)
        for event, number in events:
            if event == "again":
                while slots.in_flight:
                    slots.release()
                epochs = await take(slots, 1)
            for n in range(number):
                epoch = epochs[n % len(epochs)]
                slots.grow(epoch) if event == "grow" else slots.shrink(epoch, to_one=event == "to_one")
        return slots

    assert asyncio.run(play()).limit == limit


@given(st.lists(st.sampled_from(["start", "end", "cancel", "shrink", "to_one", "grow"]), max_size=60))
def test_slots_never_leak_and_never_pass_the_limit(moves: list[str]) -> None:
    async def play() -> None:
        slots, tasks, held = ConcurrencyLimit(start=4, most=8), [], 0
        for move in moves:
            done = [task for task in tasks if task.done() and not task.cancelled()]
            if move == "start":
                at_most = max(slots.limit, slots.in_flight)
                tasks.append(asyncio.create_task(slots.acquire("abc"[len(tasks) % 3])))
                await settle()
                assert slots.in_flight <= at_most
            elif move == "end" and done:
                tasks.remove(done[0])
                slots.release()
            elif move == "cancel" and tasks:
                tasks[-1].cancel()
            elif done:
                epoch = done[-1].result()
                slots.grow(epoch) if move == "grow" else slots.shrink(epoch, to_one=move == "to_one")
            await settle()
            held = sum(task.done() and not task.cancelled() for task in tasks)
            assert slots.in_flight == held
        while held := [task for task in tasks if task.done() and not task.cancelled()]:
            tasks.remove(held[0])
            slots.release()
            await settle()
        assert slots.in_flight == 0
        assert all(task.done() for task in tasks)

    asyncio.run(play())


# Retry-After


RETRY_AFTER = [
    ("0", 0.0),
    ("1.5", 1.5),
    ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
    ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
    ("Wed, 21 Oct 2099 07:27:00 GMT", MAX_RETRY_AFTER_S),
    ("inf", MAX_RETRY_AFTER_S),
    ("-inf", 0.0),
    ("9" * 5_000, MAX_RETRY_AFTER_S),
    ("Wed, 99 Oct 2015 07:28:10 GMT", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "seconds"), RETRY_AFTER)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert read_retry_after(text, now=lambda: 1_445_412_480.0) == seconds  # 07:28:00 on that day


@given(st.text())
def test_retry_after_is_never_out_of_bounds(text: str) -> None:
    found = read_retry_after(text)
    assert found is None or 0 <= found <= MAX_RETRY_AFTER_S


# Gate


async def through(
    gate: ProviderGate, error: BaseException | None = None, patience: float = 100.0, tenant: str = ""
) -> None:
    async with gate.hold(patience, tenant):
        if error:
            raise error


async def ends(gate: ProviderGate, *errors: BaseException | None, tenant: str = "") -> None:
    for error in errors:
        try:
            await through(gate, error, tenant=tenant)
        except BaseException as raised:  # noqa: BLE001 (the case decides what is raised)
            assert raised is error  # noqa: PT017


def test_a_pause_holds_those_back_who_already_wait_for_a_slot() -> None:
    clock, begun = Clock(held=True), []
    gate = ProviderGate(clock, concurrency=ConcurrencyLimit(start=1))

    async def one(error: JudgeError | None = None) -> None:
        async with gate.hold(100.0):
            begun.append(clock.now())
            await asyncio.sleep(0)
            if error:
                raise error

    async def play() -> None:
        first = asyncio.create_task(one(fault(429, retry_after=5.0)))
        rest = [asyncio.create_task(one()) for _ in range(10)]
        await clock.asleep(10)
        assert begun == [1_000.0]
        clock.advance(4.9)
        await settle()
        assert len(begun) == 1
        clock.advance(0.1)
        await asyncio.gather(*rest)
        assert isinstance(first.exception(), CallError)

    asyncio.run(play())
    assert begun[1:] == [1_005.0] * 10


def test_after_a_pause_one_goes_first() -> None:
    clock, under_way = Clock(held=True), []
    gate = ProviderGate(clock, concurrency=ConcurrencyLimit(start=8))

    async def one() -> None:
        async with gate.hold(100.0):
            under_way.append(gate.concurrency.in_flight)
            await asyncio.sleep(0)

    async def play() -> None:
        await ends(gate, fault(429, retry_after=5.0))
        rest = [asyncio.create_task(one()) for _ in range(6)]
        await clock.asleep(6)
        clock.advance(5)
        await asyncio.gather(*rest)

    asyncio.run(play())
    assert under_way[0] == 1
    assert max(under_way) == 4  # half of 8


DOWN = [fault(503) for _ in range(10)]
KEYS = [fault(401, "unauthorized"), fault(429, "quota_exhausted"), fault(402, "quota_exhausted")]
LONG = CallError("provider_error", "it went wrong", status=429, retryable=True, retry_after=60.0, pause_cut=True)
# What happens, one after the other: an error, an answer (None), or seconds that pass; then for how long requests are refused.
Steps = list[BaseException | float | None]
REFUSED: list[tuple[str, Steps, float]] = [
    ("nine faults in a row", DOWN[:9], 0.0),
    ("ten", DOWN, 10.0),
    ("ten, and an answer between", [*DOWN[:5], None, *DOWN[:5]], 0.0),
    ("ten, and some seconds", [*DOWN, 9.0], 1.0),
    ("ten, and all of them", [*DOWN, 10.0], 0.0),
    ("a probe that fails", [*DOWN, 10.0, fault(503)], 10.0),
    ("a probe that is answered closes it for good", [*DOWN, 10.0, None, *DOWN[:9]], 0.0),
    ("a probe that is cancelled makes room for another", [*DOWN, 10.0, asyncio.CancelledError()], 0.0),
    ("a pause", [fault(429, retry_after=70.0)], 60.0),
    ("a shorter one does not end it", [fault(429, retry_after=40.0), 41.0, fault(429, retry_after=5.0)], 5.0),
    ("a longer pause than we make", [LONG], 60.0),
    *[(f"a key refused with {one.status}", [one, 59.0], 1.0) for one in KEYS],
    *[(f"a key refused with {one.status}, in time", [one, 60.0], 0.0) for one in KEYS],
    *[
        (f"no outage: {one!r}", [one] * 30, 0.0)
        for one in (
            *(fault(400), CallError("refused", "no"), CallError("truncated", "no"), fault(429, retry_after=0.0)),
            *(JudgeError("budget_exhausted", "nothing left"), RuntimeError("ours"), asyncio.CancelledError()),
        )
    ],
]


@pytest.mark.parametrize(("steps", "left"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_for_how_long_requests_are_refused_at_once(clock: Clock, steps: Steps, left: float) -> None:
    gate = ProviderGate(clock)
    for step in steps:
        if isinstance(step, float):
            clock.advance(step)
        else:
            asyncio.run(ends(gate, step))
    clock.naps.clear()
    if left:
        with pytest.raises(NotSentError, match=r"it went wrong|asked for a pause") as caught:
            asyncio.run(through(gate, patience=left - 1.0))
        assert (caught.value.retry_after, caught.value.retryable) == (left, False)
    else:
        asyncio.run(through(gate))
    assert clock.naps == []
    assert gate.concurrency.in_flight == 0


def test_an_open_breaker_admits_one_probe_at_a_time_and_old_requests_put_nothing_off(clock: Clock) -> None:
    gate = ProviderGate(clock)

    async def play() -> None:
        release = asyncio.Event()

        async def slow(error: JudgeError | None) -> None:
            async with gate.hold(1.0):
                await release.wait()
                if error:
                    raise error

        old = asyncio.create_task(slow(fault(503)))
        await settle()
        await ends(gate, *[fault(500)] * 10)
        clock.advance(9)
        release.set()
        await asyncio.wait([old])
        assert gate.breakers[""].get_seconds_left() == 1
        clock.advance(1)
        release.clear()
        probe = asyncio.create_task(slow(None))
        await settle()
        with pytest.raises(NotSentError):
            await through(gate)
        release.set()
        await probe
        await through(gate)

    asyncio.run(play())


def test_pauses_one_after_another_hold_a_question_no_longer_than_the_longest(clock: Clock) -> None:
    gate = ProviderGate(clock, longest_pause=60.0)

    async def waits() -> None:
        waiting = asyncio.create_task(through(gate))
        while not waiting.done():
            gate.pause(25.0)  # whenever one is over, somebody is told of the next
            await asyncio.sleep(0)
        await waiting

    with pytest.raises(NotSentError):
        asyncio.run(waits())
    assert sum(clock.naps) <= 60.0
    assert gate.concurrency.in_flight == 0


@pytest.mark.parametrize("error", [*KEYS, LONG], ids=repr)
def test_nobody_waits_behind_requests_that_are_under_way_when_the_key_is_closed(clock: Clock, error: CallError) -> None:
    gate = ProviderGate(clock, concurrency=ConcurrencyLimit(start=2, most=2))

    async def play() -> list[object]:
        release = asyncio.Event()

        async def under_way() -> None:
            async with gate.hold(1.0):
                await release.wait()

        async def fails() -> None:
            async with gate.hold(1.0):
                await settle()  # until the others wait
                raise error

        slow = asyncio.create_task(under_way())
        await asyncio.sleep(0)
        queued = [asyncio.create_task(fails()), *[asyncio.create_task(through(gate)) for _ in range(20)]]
        found = await asyncio.gather(*queued, return_exceptions=True)  # while the slow one still has its slot
        release.set()
        await slow
        return found

    first, *rest = asyncio.run(play())
    assert first is error
    assert all(isinstance(one, NotSentError) for one in rest)
    assert gate.concurrency.in_flight == 0


@pytest.mark.parametrize(("cause", "number"), [("timeout", 10), ("provider_error", 10), ("unauthorized", 1)])
def test_what_a_tenant_does_to_a_provider_stops_no_other(clock: Clock, cause: FaultCause, number: int) -> None:
    gate = ProviderGate(clock)
    faults = [CallError(cause, "too slow", usage=Usage(), retryable=True)] * number
    asyncio.run(ends(gate, *faults, tenant="hostile"))
    asyncio.run(through(gate, tenant="quiet"))
    with pytest.raises(NotSentError, match="too slow"):
        asyncio.run(through(gate, tenant="hostile"))


# Spending


def spend(spending: Spending, worst: float | None, ending: Usage | BaseException) -> None:
    with spending.reserve(worst) as bill:
        if isinstance(ending, BaseException):
            raise ending
        bill.settle(ending)


BILLS = [
    ("paid", 0.5, Usage(1, 1, 0.2), 0.2, 0.0),
    ("no cost told", 0.5, Usage(1, 1, None), 0.0, 0.5),
    ("unknown price", None, Usage(1, 1, None), 0.0, 0.0),
    ("paid and of no use", 0.5, CallError("refused", "no", usage=Usage(1, 1, 0.2)), 0.2, 0.0),
    ("not billed", 0.5, CallError("provider_error", "no", status=503), 0.0, 0.0),
    ("timed out", 0.5, CallError("timeout", "no", usage=Usage()), 0.0, 0.5),
    ("cancelled", 0.5, asyncio.CancelledError(), 0.0, 0.5),
    ("by another model", 0.5, JudgeError("refused", "no"), 0.0, 0.0),
]


@pytest.mark.parametrize(
    ("worst", "ending", "spent", "uncertain"), [row[1:] for row in BILLS], ids=[row[0] for row in BILLS]
)
def test_a_bill_is_settled(worst: float | None, ending: Any, spent: float, uncertain: float) -> None:
    spending = Spending(1.0)
    try:
        spend(spending, worst, ending)
    except BaseException as raised:  # noqa: BLE001 (the case decides what is raised)
        assert raised is ending  # noqa: PT017
    assert (spending.spent_usd, spending.uncertain_usd, spending.reserved_usd) == (spent, uncertain, 0.0)
    assert spending.left_usd == 1.0 - spent - uncertain
    assert spending.unpriced == (worst is None)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=40), st.floats(0, 5))
def test_the_cap_is_never_passed_by_calls_that_cost_no_more_than_their_worst(
    calls: list[tuple[float, float]], cap: float
) -> None:
    spending = Spending(cap)
    for worst, share in calls:
        try:
            spend(spending, worst, Usage(1, 1, worst * share))
        except JudgeError as error:
            assert error.cause == "budget_exhausted"  # noqa: PT017
    assert spending.spent_usd <= cap * (1 + 1e-9)
