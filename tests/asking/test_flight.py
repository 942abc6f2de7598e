from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.asking.single_flight import LostWorkError, SingleFlight

T = TypeVar("T")


def run(work: Coroutine[object, object, T]) -> T:
    """Runs it; whatever asyncio would only have logged is raised."""
    complaints: list[object] = []

    async def heard() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        try:
            return await work
        finally:
            gc.collect()  # "Task exception was never retrieved" is said when the task goes
            await asyncio.sleep(0)

    result = asyncio.run(heard())
    gc.collect()
    assert complaints == []
    return result


class Work:
    """Work that ends when it is let go, and says how often it was started and cancelled."""

    def __init__(self, error: Exception | None = None) -> None:
        self.started = self.cancelled = 0
        self.gate = asyncio.Event()
        self.error = error

    async def __call__(self) -> int:
        self.started += 1
        number = self.started
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return number


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def ended(callers: list[asyncio.Task[tuple[int, bool]]]) -> list[object]:
    """What each caller got: its result, its error, or "cancelled"."""
    done = await asyncio.gather(*callers, return_exceptions=True)
    return ["cancelled" if isinstance(one, asyncio.CancelledError) else one for one in done]


def calling(flights: SingleFlight[int], work: Callable[[], Awaitable[int]], count: int, key: str = "k"):
    return [asyncio.create_task(flights.run_once(key, work)) for _ in range(count)]


def test_the_last_to_leave_ends_the_work_and_the_next_starts_anew() -> None:
    async def scene() -> None:
        flights, work = SingleFlight[int](), Work()
        callers = calling(flights, work, 3)
        await settle()
        for caller in callers:
            caller.cancel()
        fresh = calling(flights, work, 2)  # while the work is still being cancelled
        assert await ended(callers) == ["cancelled"] * 3
        await settle()
        assert (work.started, work.cancelled) == (2, 1)
        fresh += calling(flights, work, 1)  # what was cancelled has not taken the new work from its key
        await settle()
        work.gate.set()
        assert await ended(fresh) == [(2, False), (2, True), (2, True)]

    run(scene())


@pytest.mark.parametrize("turns", range(4))
def test_a_caller_gone_at_once_leaves_nothing_behind(turns: int) -> None:
    async def scene() -> None:
        flights, work = SingleFlight[int](), Work()
        caller = asyncio.create_task(flights.run_once("k", work))
        for _ in range(turns):
            await asyncio.sleep(0)
        caller.cancel()
        assert await ended([caller]) == ["cancelled"]
        await settle()
        assert (work.cancelled, len(flights)) == (work.started, 0)

    run(scene())


def test_who_calls_when_another_is_told_of_an_error_starts_anew() -> None:
    """There is no moment in which the error stands for work that is under way."""

    async def scene() -> None:
        flights, good = SingleFlight[int](), Work()
        good.gate.set()

        async def bad() -> int:
            later.append(asyncio.create_task(flights.run_once("k", good)))
            raise ValueError

        later: list[asyncio.Task[tuple[int, bool]]] = []
        with pytest.raises(ValueError):  # noqa: PT011
            await flights.run_once("k", bad)
        assert await ended(later) == [(1, False)]

    run(scene())


def test_an_error_that_nobody_waits_for_is_not_complained_of() -> None:
    async def scene() -> None:
        flights = SingleFlight[int]()

        async def stubborn() -> int:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError from None
            raise AssertionError

        (caller,) = calling(flights, stubborn, 1)
        await settle()
        caller.cancel()
        assert await ended([caller]) == ["cancelled"]
        await settle()

    run(scene())


def test_work_cancelled_from_within_is_an_error_and_cancels_no_caller() -> None:
    async def scene() -> None:
        flights = SingleFlight[int]()

        async def cancelled() -> int:
            await asyncio.sleep(0)
            raise asyncio.CancelledError

        found = await ended(calling(flights, cancelled, 2))
        assert [type(one) for one in found] == [LostWorkError, LostWorkError]

    run(scene())


class Model:
    """The flights beside what should become of them: the open work of each key, and who waits for it."""

    def __init__(self) -> None:
        self.flights = SingleFlight[int]()
        self.open: dict[str, tuple[Work, int, list[int]]] = {}
        self.callers: list[asyncio.Task[tuple[int, bool]]] = []
        self.wanted: list[object] = []
        self.works = 0

    def call(self, key: str) -> None:
        first = key not in self.open
        if first:
            self.works += 1
            self.open[key] = (Work(), self.works, [])
        work, number, waiting = self.open[key]

        async def made() -> int:
            await work()
            return number

        waiting.append(len(self.callers))
        self.wanted.append((number, not first))
        self.callers.append(asyncio.create_task(self.flights.run_once(key, made)))

    def cancel(self, number: int) -> None:
        for key, (_, _, waiting) in list(self.open.items()):
            if number not in waiting:
                continue
            self.callers[number].cancel()
            self.wanted[number] = "cancelled"
            waiting.remove(number)
            if not waiting:
                del self.open[key]

    def succeed(self, key: str, error: Exception | None = None) -> None:
        if key not in self.open:
            return
        work, _, waiting = self.open.pop(key)
        work.error = error
        work.gate.set()
        for number in waiting:
            self.wanted[number] = error or self.wanted[number]

    def fail(self, key: str) -> None:
        self.succeed(key, ValueError("no"))


KEYS = st.sampled_from("ab")
ACTS = st.one_of(
    st.tuples(st.just("call"), KEYS),
    st.tuples(st.just("cancel"), st.integers(0, 7)),
    st.tuples(st.sampled_from(["succeed", "fail"]), KEYS),
)


@given(st.lists(ACTS, max_size=20))
def test_any_order_of_calls_and_ends(acts: list[tuple[str, str | int]]) -> None:
    async def scene() -> None:
        model = Model()
        for act, value in [*acts, ("succeed", "a"), ("succeed", "b")]:
            getattr(model, act)(value)
            await settle()
            assert len(model.flights) == len(model.open)
        assert await ended(model.callers) == model.wanted

    asyncio.run(scene())
