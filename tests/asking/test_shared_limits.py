"""Limits that several processes share: each gate here is a process of its own, all over one real Redis and one clock of ours."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis import Redis

from service.asking.budget.reservations import Spending
from service.asking.calls import ModelCaller, RetryPolicy
from service.asking.faults import CallError, NotSentError
from service.asking.limits.lua import ENTER
from service.asking.limits.policies import ConcurrencyLimit
from service.asking.limits.provider_gate import ProviderGate, ProviderGates
from service.asking.limits.shared import LEASE_S, RENEWAL_INTERVAL_S, SharedLimits
from service.core.judging.prompts import Completion, Prompt, Turn, Usage
from service.errors import FaultCause, JudgeError
from service.settings import Settings
from service.wiring import build_shared_limits
from tests.asking.cache_servers import relay
from tests.faults.clock import Clock

PLACE = ("openai/x", "account")


@pytest.fixture
def prefix(redis_url: str) -> Iterator[str]:
    """The prefix of one test, whose keys are gone at its end."""
    made = f"callgrade:test:{secrets.token_hex(8)}:"
    yield made
    with Redis.from_url(redis_url) as client:
        for name in client.scan_iter(f"{made}*", count=1000):
            client.delete(name)


@pytest.fixture
def stored(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url) as client:
        yield client


class World:
    """Processes that share a Redis and a clock. The clock is the server's time too."""

    def __init__(self, url: str, prefix: str, clock: Clock, /, **options: Any) -> None:
        self.clock = clock
        self.begun: list[tuple[int, float]] = []
        """Which process made a request, and when."""
        self._url = url
        self._options = {"most": 64, "patience": 30.0, "prefix": prefix, "now": clock.now} | options
        self.limits: list[SharedLimits] = []

    def process(self) -> ProviderGate:
        """One more."""
        limits = SharedLimits(self._url, **self._options)
        self.limits.append(limits)
        return ProviderGate(
            self.clock, concurrency=ConcurrencyLimit(start=8, most=64), shared=limits.build_gate(*PLACE)
        )

    async def request(
        self,
        gate: ProviderGate,
        error: BaseException | None = None,
        patience: float = 1_000.0,
        lasts: float = 0.0,
        tenant: str = "",
    ) -> str:
        """One request that ends in an error or none; how it ended for who asked."""
        name = id(gate)
        try:
            async with gate.hold(patience, tenant):
                self.begun.append((name, self.clock.now()))
                await asyncio.sleep(0)
                self.clock.advance(lasts)
                if error:
                    raise error
        except NotSentError as refused:
            return f"not sent: {refused.cause} {refused.retry_after:.3f}"
        except JudgeError as raised:
            return raised.cause
        return "answered"


@asynccontextmanager
async def world(url: str, prefix: str, ours: Clock | None = None, /, **options: Any) -> AsyncIterator[World]:
    made = World(url, prefix, ours or Clock(), **options)
    try:
        yield made
    finally:
        for limits in made.limits:
            await limits.close()


def fault(status: int | None = 500, cause: FaultCause = "provider_error", **more: Any) -> CallError:
    return CallError(cause, "it went wrong", status=status, retryable=status in (None, 429, 500, 503), **more)


# What one process learns holds for all.


@pytest.mark.needs_redis
def test_a_pause_that_one_is_told_holds_for_all(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix) as here:
            one, other, third = (here.process() for _ in range(3))
            assert await here.request(one, fault(429, retry_after=5.0)) == "provider_error"
            assert await here.request(other, patience=4.0) == "not sent: provider_error 5.000"
            assert len(here.begun) == 1
            assert [await here.request(third) for _ in range(3)] == ["answered"] * 3
            assert [when for _, when in here.begun[1:]] == [1_005.0] * 3

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_a_storm_of_429_sends_no_request_inside_a_window_from_any(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix) as here:
            gates = [here.process() for _ in range(3)]
            for _ in range(6):
                for gate in gates:
                    assert await here.request(gate, fault(429, retry_after=2.0)) == "provider_error"
            assert [when for _, when in here.begun] == [1_000.0 + 2 * n for n in range(18)]

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_a_key_that_one_finds_used_up_is_used_by_none(redis_url: str, prefix: str) -> None:
    error = fault(429, "quota_exhausted")

    async def scene() -> None:
        async with world(redis_url, prefix) as here:
            one, other = here.process(), here.process()
            await here.request(one, error)
            here.clock.advance(20)
            with pytest.raises(NotSentError, match="it went wrong") as caught:
                async with other.hold(1_000.0):
                    raise AssertionError
            assert (caught.value.cause, caught.value.retry_after) == (error.cause, 40.0)
            assert await here.request(other) == f"not sent: {error.cause} 40.000"
            assert len(here.begun) == 1
            here.clock.advance(40)
            assert await here.request(other) == "answered"

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_what_another_has_learnt_holds_nobody_longer_than_the_longest_pause(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix) as here:
            patient, other = here.process(), here.process()
            patient._longest_pause = 3_600.0  # one with another setting
            await here.request(patient, fault(402, "quota_exhausted"))
            assert await here.request(other) == "not sent: quota_exhausted 60.000"
            await here.request(patient, fault(429, retry_after=1_800.0))
            assert (await here.request(other)).startswith("not sent: ")

    asyncio.run(scene())


async def outage(here: World, gate: ProviderGate, tenant: str = "") -> None:
    for _ in range(10):
        await here.request(gate, fault(503), tenant=tenant)
    here.begun.clear()


@pytest.mark.needs_redis
def test_an_outage_that_one_sees_stops_that_process_alone(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix) as here:
            one, other = here.process(), here.process()
            await outage(here, one)
            assert await here.request(one, patience=0.0) == "not sent: provider_error 10.000"
            assert await here.request(other, patience=0.0) == "answered"

    asyncio.run(scene())


@asynccontextmanager
async def under_way(gate: ProviderGate, number: int, error: JudgeError) -> AsyncIterator[list[asyncio.Future[None]]]:
    """Requests that fail when told to, with a future each."""
    ends = [asyncio.get_running_loop().create_future() for _ in range(number)]
    begun = asyncio.Semaphore(0)

    async def one(end: asyncio.Future[None]) -> None:
        async with gate.hold(1.0):
            begun.release()
            await end
            raise error

    tasks = [asyncio.create_task(one(end)) for end in ends]
    for _ in ends:
        await begun.acquire()
    yield ends
    await asyncio.gather(*tasks, return_exceptions=True)


def let_go(ends: list[asyncio.Future[None]]) -> None:
    for end in ends:
        end.set_result(None)


# How many are under way at once.


@pytest.mark.needs_redis
def test_no_more_are_under_way_than_may_be_over_all(redis_url: str, prefix: str) -> None:
    most, under_way, peaks = 5, 0, Counter[int]()

    async def scene() -> None:
        async with world(redis_url, prefix, most=most, now=None) as here:
            gates = [here.process() for _ in range(3)]

            async def one(gate: ProviderGate) -> None:
                nonlocal under_way
                async with gate.hold(100.0):
                    under_way += 1
                    peaks[under_way] += 1
                    await asyncio.sleep(0.001)
                    under_way -= 1

            await asyncio.gather(*[one(gate) for gate in gates for _ in range(40)])
            assert [gate.concurrency.in_flight for gate in gates] == [0, 0, 0]

    asyncio.run(scene())
    assert max(peaks) == most
    assert peaks.total() == 120


@pytest.mark.needs_redis
def test_cancelling_who_waits_for_a_place_loses_none(redis_url: str, prefix: str, stored: Redis) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix, most=1, now=None) as here:
            one, other = here.process(), here.process()
            async with one.hold(1.0):
                waiting = [asyncio.create_task(here.request(gate)) for gate in (one, other) for _ in range(3)]
                while stored.zcard(f"{prefix}openai/x:account:waiting") != 2:  # noqa: ASYNC110 (counted elsewhere)
                    await asyncio.sleep(0.001)
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                assert (one.concurrency.in_flight, other.concurrency.in_flight) == (1, 0)
            assert await here.request(other) == "answered"
            assert stored.zcard(f"{prefix}openai/x:account:leases") == 0

    asyncio.run(scene())


async def asked(limits: SharedLimits, prefix: str, process: str = "another") -> str:
    """What Redis says to a process that asks for a place; if it gets one, it has it."""
    keys = [f"{prefix}openai/x:account:{name}" for name in ("state", "leases", "waiting")]
    reply: Any = await limits.run(ENTER, keys, secrets.token_hex(8), process, limits.most, LEASE_S)
    return reply[0].decode()


@pytest.mark.needs_redis
def test_a_process_that_dies_gives_its_places_back(redis_url: str, prefix: str) -> None:
    clock = Clock()

    async def dies() -> None:
        async with world(redis_url, prefix, clock, most=3) as here:
            gate = here.process()
            for _ in range(3):
                assert gate.shared
                await gate.shared.enter()

    async def lives() -> None:
        async with world(redis_url, prefix, clock, most=3) as here:
            here.process()
            assert await asked(here.limits[0], prefix) == "full"
            clock.advance(LEASE_S - 0.1)
            assert await asked(here.limits[0], prefix) == "full"
            clock.advance(0.2)
            assert [await asked(here.limits[0], prefix) for _ in range(4)] == ["go", "go", "go", "full"]

    asyncio.run(dies())
    asyncio.run(lives())


@pytest.mark.needs_redis
def test_a_long_request_keeps_its_place(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        clock = Clock(held=True)
        async with world(redis_url, prefix, clock, most=1, sleep=clock.sleep) as here:
            gate, limits = here.process(), here.limits[0]
            assert gate.shared
            lease = await gate.shared.enter()
            assert isinstance(lease, str)
            for _ in range(10):
                await clock.asleep(1)
                clock.advance(RENEWAL_INTERVAL_S)
                await clock.asleep(1)
                assert await asked(limits, prefix) == "full"
            await gate.shared.leave(lease, None)
            assert await asked(limits, prefix) == "go"
            clock.advance(RENEWAL_INTERVAL_S)
            await asyncio.sleep(0)
            await clock.asleep(0)

    asyncio.run(scene())


# time, process, what it is told; every place is freed LEASE seconds after it was taken
TURNS = [
    (0.0, "a", "go"),
    (1.0, "a", "go"),
    (1.0, "a", "full"),  # two places, and a waits for a third
    (1.5, "b", "full"),
    (1.6, "a", "full"),  # b asked longer ago now
    (1.7, "b", "full"),
    (10.1, "c", "go"),  # one place is free, and those who waited have gone
    (10.2, "a", "full"),
    (10.9, "b", "full"),
    (11.1, "b", "full"),  # one is free, and a asked longer ago
    (11.15, "a", "go"),
    (11.2, "a", "full"),
    (20.05, "b", "full"),  # c's ends at 20.1
    (20.06, "a", "full"),
    (20.15, "a", "full"),  # b is first, however often a asks
    (20.16, "a", "full"),
    (20.17, "b", "go"),
    (40.0, "a", "go"),
    (40.5, "a", "go"),
    (49.8, "a", "full"),
    (50.1, "a", "go"),  # and a waits no longer
    (50.6, "d", "go"),
]


@pytest.mark.needs_redis
def test_who_asked_longest_ago_is_first(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix, most=2) as here:
            here.process()
            told = []
            for time, process, _ in TURNS:
                here.clock.time = 1_000 + time
                told.append(await asked(here.limits[0], prefix, process))
            assert told == [kind for _, _, kind in TURNS]

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_a_clock_that_is_set_back_holds_nobody_up(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix, most=1) as here:
            one, other = here.process(), here.process()
            here.clock.advance(10_000)
            await here.request(one, fault(429, retry_after=3_600.0))
            here.clock.advance(3_600)
            await outage(here, one)
            here.clock.advance(10)
            assert one.shared
            await one.shared.enter()  # and is never heard of again
            here.clock.time -= 7_200
            assert await here.request(other, patience=0.0) == "answered"

    asyncio.run(scene())


# What it costs, and what happens without.


@pytest.mark.needs_redis
def test_a_call_asks_twice(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with relay(redis_url) as between, world(between.url, prefix) as here:
            gate = here.process()
            await here.request(gate)  # connects, and loads the scripts
            before = between.asked
            for _ in range(20):
                assert await here.request(gate) == "answered"
            assert between.asked - before == 40

    asyncio.run(scene())


def test_without_redis_nothing_is_waited_for(clock: Clock) -> None:
    async def scene() -> None:
        async with ProviderGate(clock).hold(1.0):
            pass

    with pytest.raises(StopIteration):
        scene().send(None)
    assert build_shared_limits(Settings()) is None


def test_the_setting_is_the_most_over_all() -> None:
    settings = Settings.from_env({"CALLGRADE_CACHE_URL": "redis://127.0.0.1:1", "CALLGRADE_JUDGE_IN_FLIGHT": "7"})
    limits = build_shared_limits(settings)
    assert limits is not None
    assert limits.most == 7
    asyncio.run(limits.close())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@asynccontextmanager
async def nobody(url: str, prefix: str) -> AsyncIterator[str]:
    yield f"redis://127.0.0.1:{free_port()}"


@asynccontextmanager
async def silent(url: str, prefix: str) -> AsyncIterator[str]:
    async with relay(None) as between:
        yield between.url


@asynccontextmanager
async def cut_off(url: str, prefix: str) -> AsyncIterator[str]:
    async with relay(url, "lose") as between:
        yield between.url


@asynccontextmanager
async def no_redis(url: str, prefix: str) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def strange_keys(url: str, prefix: str) -> AsyncIterator[str]:
    with Redis.from_url(url) as client:
        client.set(f"{prefix}openai/x:account:state", "not a hash")
    yield url


GONE = [nobody, silent, cut_off, no_redis, strange_keys]


@pytest.mark.needs_redis
@pytest.mark.parametrize("server", GONE, ids=lambda server: server.__name__)
def test_a_redis_that_cannot_be_used_stops_nothing(
    redis_url: str, prefix: str, server: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with server(redis_url, prefix) as url, world(url, prefix, patience=0.1, rest=3_600.0) as here:
            gate = here.process()
            ends = await asyncio.gather(*[here.request(gate) for _ in range(30)])
            assert ends == ["answered"] * 30
            await here.request(gate, fault(429, retry_after=5.0))
            assert await here.request(gate, patience=1.0) == "not sent: provider_error 5.000"
            here.clock.advance(5)
            await outage(here, gate)
            assert (await here.request(gate)).startswith("not sent: provider_error")
            assert gate.concurrency.in_flight == 0

    with caplog.at_level(logging.INFO, "callgrade.limits"):
        asyncio.run(scene())
    (record,) = [one for one in caplog.records if one.name == "callgrade.limits"]
    assert record.levelno == logging.WARNING
    assert "each process keeps to its own" in record.getMessage()


@pytest.mark.needs_redis
@pytest.mark.parametrize("kind", ["hang", "lose"])
def test_a_redis_that_fails_midway_is_used_again_when_it_is_back(redis_url: str, prefix: str, kind: Any) -> None:
    async def scene() -> None:
        now = 0.0
        options: dict[str, Any] = {"patience": 0.3, "rest": 1.0, "clock": lambda: now}
        async with relay(redis_url) as between, world(between.url, prefix, **options) as here:
            one, other = here.process(), here.process()
            assert await here.request(one) == "answered"
            async with one.hold(1.0):
                between.fault = kind
            asked = between.asked
            for _ in range(20):
                assert await here.request(one) == "answered"
            assert between.asked == asked  # it rests
            now, between.fault = 1.5, ""
            await here.request(one, fault(429, retry_after=5.0))
            assert await here.request(other, patience=1.0) == "not sent: provider_error 5.000"

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_who_waited_for_a_place_heeds_what_happened_meanwhile(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with relay(redis_url) as between, world(between.url, prefix, most=1, patience=0.3) as here:
            gate = here.process()
            async with under_way(gate, 1, fault(429, retry_after=5.0)) as ends:
                waiting = asyncio.create_task(here.request(gate, patience=1.0))
                while gate.concurrency.in_flight < 2:  # noqa: ASYNC110 (counted elsewhere)
                    await asyncio.sleep(0.001)
                between.fault = "lose"
                let_go(ends)
            assert await waiting == "not sent: provider_error 5.000"
            assert here.begun == []

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_while_it_is_lost_one_call_in_a_while_finds_out_and_the_others_do_not_wait(
    redis_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        now = 0.0
        async with relay(None) as between, world(between.url, prefix, patience=0.1, clock=lambda: now) as here:
            gate = here.process()
            await here.request(gate)
            for now in (2.0, 4.0, 100.0):  # noqa: B007 (the clock reads it)
                before = between.asked
                await asyncio.gather(*[here.request(gate) for _ in range(8)])
                assert between.asked - before == 1

    asyncio.run(scene())
    assert len(caplog.records) == 1


class Model:
    """Answers, or fails as it is told."""

    def __init__(self, *script: JudgeError) -> None:
        self.script = list(script)
        self.calls = 0

    async def complete(self, prompt: Prompt) -> Completion:  # noqa: ARG002 (the port's name)
        self.calls += 1
        if self.script:
            raise self.script.pop(0)
        return Completion("{}", "stand-in", Usage())


@pytest.mark.needs_redis
def test_whole_calls_of_two_processes_share_by_provider_and_account(redis_url: str, prefix: str) -> None:
    async def scene() -> None:
        async with world(redis_url, prefix) as here:
            prompt = Prompt("openai/x", (Turn("user", "Judge."),), {}, 50)

            def caller(model: Model, account: str) -> ModelCaller:
                here.process()
                gates = ProviderGates(here.clock, shared=here.limits[-1].build_gate)
                return ModelCaller(model, gates, account=account, policy=RetryPolicy(attempts=1, total_s=30.0))

            first, second, third = Model(fault(429, retry_after=60.0)), Model(), Model()
            with pytest.raises(CallError):
                await caller(first, "key").complete(prompt, Spending())
            with pytest.raises(NotSentError):
                await caller(second, "key").complete(prompt, Spending())
            await caller(third, "another").complete(prompt, Spending())
            assert (first.calls, second.calls, third.calls) == (1, 0, 1)

    asyncio.run(scene())
