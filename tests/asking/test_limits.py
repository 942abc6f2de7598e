"""The limits one by one, over a clock that stands still: slots, pause, breaker, retry budget, gate, spending."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.asking.budget.reservations import Spending
from service.asking.faults import MAX_RETRY_AFTER_S, CallError, NotSentError, read_retry_after
from service.asking.limits import Breaker, ConcurrencyLimit, Cooldown, ProviderGate
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


async def _slots_are_handed_out_in_order() -> None:
    slots, order = ConcurrencyLimit(start=1), []

    async def one(name: int) -> None:
        await slots.acquire()
        order.append(name)
        await asyncio.sleep(0)
        slots.release()

    await asyncio.gather(*(one(name) for name in range(20)))
    assert order == list(range(20))
    assert slots.in_flight == 0


async def _names_take_turns() -> None:
    slots, order = ConcurrencyLimit(start=1), []

    async def use(name: str) -> None:
        await slots.acquire(name)
        order.append(name)
        await settle()
        slots.release()

    await asyncio.gather(*[use(name) for name in "aaaaabbc"])
    assert "".join(order) == "aabcabaa"
    assert (slots.in_flight, slots.limit) == (0, 1)


async def _half_as_many_after_a_429() -> None:
    slots = ConcurrencyLimit(start=16)
    epoch = (await take(slots, 16))[0]
    slots.shrink(epoch)
    assert slots.limit == 8


async def _a_burst_of_429_halves_once() -> None:
    slots = ConcurrencyLimit(start=16)
    for epoch in await take(slots, 16):
        slots.shrink(epoch)
    assert slots.limit == 8


async def _one_more_for_each_round_of_answers() -> None:
    slots = ConcurrencyLimit(start=4, most=6)
    for wanted in (5, 6, 6):
        for epoch in await take(slots, slots.limit):
            slots.grow(epoch)
        for _ in range(slots.in_flight):
            slots.release()
        assert slots.limit in (wanted - 1, wanted)  # 4 * (1 + 1/4 + ...) falls a little short of one whole
    assert slots.limit <= 6


async def _answers_from_before_a_decrease_tell_nothing() -> None:
    slots = ConcurrencyLimit(start=2)
    old = await take(slots, 2)
    slots.shrink(old[0])
    for _ in range(50):
        slots.grow(old[1])
    assert slots.limit == 1


async def _one_at_a_time_until_a_later_one_is_answered() -> None:
    slots = ConcurrencyLimit(start=8)
    old = await take(slots, 8)
    slots.shrink(old[0], to_one=True)
    slots.grow(old[1])
    assert slots.limit == 1
    for _ in range(8):
        slots.release()
    new = await slots.acquire()
    slots.grow(new)
    assert slots.limit == 4


async def _cancelling_who_waits_loses_no_slot() -> None:
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


SLOT_CASES = [
    _slots_are_handed_out_in_order,
    _names_take_turns,
    _half_as_many_after_a_429,
    _a_burst_of_429_halves_once,
    _one_more_for_each_round_of_answers,
    _answers_from_before_a_decrease_tell_nothing,
    _one_at_a_time_until_a_later_one_is_answered,
    _cancelling_who_waits_loses_no_slot,
]


@pytest.mark.parametrize("case", SLOT_CASES, ids=lambda case: case.__name__.strip("_"))
def test_slots(case: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(case())  # type: ignore[arg-type]


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


# Pause and Retry-After


def test_a_shorter_pause_does_not_end_a_longer_one(clock: Clock) -> None:
    pause = Cooldown(clock)
    pause.extend(10)
    pause.extend(2)
    assert pause.get_seconds_left() == 10
    clock.advance(11)
    assert pause.get_seconds_left() == 0


RETRY_AFTER = [
    ({"retry-after": "0"}, 0.0),
    ({"retry-after": "1.5"}, 1.5),
    ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT"}, 10.0),
    ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
    ({"retry-after": "Wed, 21 Oct 2099 07:27:00 GMT"}, MAX_RETRY_AFTER_S),
    ({"retry-after": "inf"}, MAX_RETRY_AFTER_S),
    ({"retry-after": "-inf"}, 0.0),
    ({"retry-after": "9" * 5_000}, MAX_RETRY_AFTER_S),
    ({"retry-after": "Wed, 99 Oct 2015 07:28:10 GMT"}, None),
    ({"retry-after": ""}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), RETRY_AFTER)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, now=lambda: 1_445_412_480.0) == seconds  # 07:28:00 on that day


@given(st.text())
def test_retry_after_is_never_out_of_bounds(text: str) -> None:
    found = read_retry_after({"retry-after": text})
    assert found is None or 0 <= found <= MAX_RETRY_AFTER_S


# Breaker


def test_it_opens_after_ten_faults_in_a_row(clock: Clock) -> None:
    breaker = Breaker(clock)
    for number in range(10):
        assert not breaker.is_open, number
        breaker.note_failure(fault(503), probe=False)
    assert breaker.is_open
    assert breaker.get_seconds_left() == 10


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(10):
        breaker.note_failure(fault(503), probe=breaker.admit())
    return breaker


def test_one_probe_at_a_time(clock: Clock) -> None:
    breaker = opened(clock)
    clock.advance(10)
    assert breaker.get_seconds_left() == 0
    assert breaker.admit()
    assert breaker.get_seconds_left() > 0


def test_a_probe_that_fails_puts_the_next_one_off(clock: Clock) -> None:
    breaker = opened(clock)
    clock.advance(10)
    breaker.note_failure(fault(503), probe=breaker.admit())
    assert breaker.get_seconds_left() == 10


def test_old_requests_that_fail_put_nothing_off(clock: Clock) -> None:
    breaker = opened(clock)
    clock.advance(9)
    breaker.note_failure(fault(503), probe=False)
    assert breaker.get_seconds_left() == 1


def test_a_probe_that_is_answered_closes_it_for_good(clock: Clock) -> None:
    breaker = opened(clock)
    clock.advance(10)
    breaker.admit()
    breaker.note_success()
    breaker.note_failure(fault(503), probe=False)
    assert not breaker.is_open


def test_a_probe_that_is_cancelled_makes_room_for_another(clock: Clock) -> None:
    breaker = opened(clock)
    clock.advance(10)
    breaker.note_abandonment(probe=breaker.admit())
    assert breaker.get_seconds_left() == 0


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


def test_a_storm_of_429_sends_one_request_for_each_window() -> None:
    clock, begun = Clock(), []
    gate = ProviderGate(clock)

    async def one() -> None:
        async with gate.hold(1_000.0):
            begun.append(clock.now())
            raise fault(429, retry_after=2.0)

    async def play() -> None:
        for _ in range(10):
            await asyncio.gather(one(), return_exceptions=True)

    asyncio.run(play())
    assert [after - before for before, after in pairwise(begun)] == [2.0] * 9
    assert not gate.breakers[""].is_open


def test_a_pause_that_outlasts_the_patience_is_told_at_once(clock: Clock) -> None:
    gate = ProviderGate(clock)
    asyncio.run(ends(gate, fault(429, retry_after=60.0)))
    with pytest.raises(NotSentError) as caught:
        asyncio.run(through(gate, patience=59.0))
    assert caught.value.retry_after == 60.0
    assert clock.naps == []


def test_an_open_breaker_is_told_at_once_with_the_last_fault(clock: Clock) -> None:
    gate = ProviderGate(clock)
    asyncio.run(ends(gate, *[fault(503) for _ in range(10)]))
    with pytest.raises(NotSentError, match="it went wrong") as caught:
        asyncio.run(through(gate))
    assert (caught.value.cause, caught.value.retry_after, caught.value.retryable) == ("provider_error", 10.0, False)
    clock.advance(10)
    asyncio.run(through(gate))
    assert not gate.breakers[""].is_open


HARMLESS = [
    fault(400),
    CallError("refused", "no"),
    CallError("filtered", "no"),
    CallError("truncated", "no"),
    fault(429, retry_after=0.0),
    JudgeError("budget_exhausted", "nothing left"),
    RuntimeError("a mistake of ours"),
    asyncio.CancelledError(),
]


@pytest.mark.parametrize("error", HARMLESS, ids=repr)
def test_what_is_no_outage_never_opens_the_breaker(clock: Clock, error: BaseException) -> None:
    gate = ProviderGate(clock)
    asyncio.run(ends(gate, *[error] * 30, None))
    assert not gate.breakers[""].is_open
    assert gate.concurrency.in_flight == 0


CLOSING = [fault(401, "unauthorized"), fault(429, "quota_exhausted"), fault(402, "quota_exhausted")]


@pytest.mark.parametrize("error", CLOSING, ids=repr)
def test_a_key_that_is_refused_is_left_alone_for_a_while(clock: Clock, error: CallError) -> None:
    gate = ProviderGate(clock)
    asyncio.run(ends(gate, error))
    clock.advance(59)
    with pytest.raises(NotSentError) as caught:
        asyncio.run(through(gate))
    assert (caught.value.cause, caught.value.retry_after) == (error.cause, 1.0)
    clock.advance(1)
    asyncio.run(through(gate))


LONG = CallError("provider_error", "it went wrong", status=429, retryable=True, retry_after=60.0, pause_cut=True)


def test_nobody_waits_where_the_provider_wants_a_longer_pause_than_we_make(clock: Clock) -> None:
    gate = ProviderGate(clock)
    asyncio.run(ends(gate, LONG))
    with pytest.raises(NotSentError) as caught:
        asyncio.run(through(gate))
    assert (caught.value.cause, caught.value.retry_after) == ("provider_error", 60.0)
    assert clock.naps == []
    clock.advance(60)
    asyncio.run(through(gate))


def test_pauses_one_after_another_hold_a_question_no_longer_than_the_longest(clock: Clock) -> None:
    gate = ProviderGate(clock, longest_pause=60.0)

    async def waits() -> None:
        waiting = asyncio.create_task(through(gate))
        while not waiting.done():
            gate.cooldown.extend(25.0)  # whenever one is over, somebody is told of the next
            await asyncio.sleep(0)
        await waiting

    with pytest.raises(NotSentError):
        asyncio.run(waits())
    assert sum(clock.naps) <= 60.0
    assert gate.concurrency.in_flight == 0


@pytest.mark.parametrize("error", [*CLOSING, LONG], ids=repr)
def test_nobody_waits_behind_requests_that_are_under_way_when_the_key_is_closed(clock: Clock, error: CallError) -> None:
    gate = ProviderGate(clock, concurrency=ConcurrencyLimit(start=2, most=2))

    async def play() -> list[object]:
        release = asyncio.Event()

        async def under_way() -> None:
            async with gate.hold(1.0):
                await release.wait()

        slow = asyncio.create_task(under_way())
        await asyncio.sleep(0)
        queued = [asyncio.create_task(through(gate, error)), *[asyncio.create_task(through(gate)) for _ in range(20)]]
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


def test_what_is_reserved_cannot_be_spent_twice() -> None:
    spending = Spending(1.0)
    with spending.reserve(0.7):
        with pytest.raises(JudgeError, match="budget_exhausted") as caught:
            spending.reserve(0.4)
        assert not caught.value.retryable
        assert spending.reserved_usd == 0.7


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
