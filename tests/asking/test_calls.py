"""Whole calls through the real litellm against the provider that goes wrong: outcomes, numbers of requests, what is left."""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections import Counter
from typing import Any

import pytest

from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.calls import ModelCaller, RetryPolicy
from service.asking.faults import CallError, NotSentError
from service.asking.judging import Judges, Judging
from service.asking.limits import ConcurrencyLimit, ProviderGate
from service.asking.model import LiteLLM
from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Completion, Prompt, Turn
from service.engine import plan
from service.errors import JudgeError
from tests.conftest import Run
from tests.faults.clock import Clock
from tests.faults.provider import Provider

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}, "required": ["label"]}
PRICED = "gpt-4o-mini"
POLICY = RetryPolicy(attempts=3, attempt_s=20.0)
SHORT = RetryPolicy(attempts=2, attempt_s=0.3)

Outcome = Completion | JudgeError


def prompt(model: str) -> Prompt:
    return Prompt(f"openai/{model}", (Turn("user", "Judge."),), SCHEMA, 50)


def caller(
    provider: Provider,
    clock: Clock,
    policy: RetryPolicy = POLICY,
    *,
    script: str | None = None,
    at_once: int = 16,
) -> ModelCaller:
    model = LiteLLM(api_base=provider.base(script), api_key="the-key", reply="auto")

    def make_gate(_: str) -> ProviderGate:
        return ProviderGate(clock, concurrency=ConcurrencyLimit(start=at_once))

    chance = random.Random(7)  # noqa: S311 (jitter)
    return ModelCaller(model, make_gate, pricing=model.worst_usd, policy=policy, chance=chance)


async def ended(one: ModelCaller, model: str, spending: Spending | None = None) -> Outcome:
    try:
        return await one.complete(prompt(model), spending or Spending())
    except JudgeError as error:
        return error


async def all_ended(one: ModelCaller, model: str, number: int, spending: Spending | None = None) -> list[Outcome]:
    return await asyncio.gather(*(ended(one, model, spending) for _ in range(number)))


def causes(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(one.cause if isinstance(one, JudgeError) else "answered" for one in outcomes)


@pytest.fixture(autouse=True, scope="module")
def warm(run: Run) -> None:
    """The first call imports the library, which no deadline of a test is to count in."""
    model = LiteLLM(api_base=None, api_key="none", reply="auto")
    run(model.worst_usd(prompt(PRICED)))


# A fault, the policy, how the call ends, and between which seconds each wait before a retry lies.
RETRIES: list[tuple[str, RetryPolicy, str, list[tuple[float, float]]]] = [
    ("hang", SHORT, "timeout", [(0.25, 0.5)]),
    ("drip", SHORT, "timeout", [(0.25, 0.5)]),
    ("400", POLICY, "provider_error", []),
    ("429-after-2", POLICY, "provider_error", [(2.0, 2.0 + POLICY.backoff_s)] * 2),
    ("429-after-60", RetryPolicy(attempts=3, total_s=30.0), "provider_error", []),
    (
        "500",
        RetryPolicy(attempts=5, backoff_s=1.0, max_backoff_s=3.0),
        "provider_error",
        [(0.5, 1.0), (1.0, 2.0), (1.5, 3.0), (1.5, 3.0)],
    ),
]


@pytest.mark.parametrize(("kind", "policy", "cause", "waits"), RETRIES)
def test_a_call_is_retried_as_its_policy_and_the_provider_say(  # noqa: PLR0913, PLR0917 (a table)
    run: Run, provider: Provider, clock: Clock, kind: str, policy: RetryPolicy, cause: str, waits: list[Any]
) -> None:
    outcome = run(ended(caller(provider, clock, policy), f"fault-{kind}"))
    assert causes([outcome]) == {cause: 1}
    assert isinstance(outcome, CallError)
    assert outcome.retry_after == (float(kind[10:]) if kind.startswith("429-after") else None)
    assert len(provider.requests) == 1 + len(waits)
    assert all(low <= nap <= high for nap, (low, high) in zip(clock.naps, waits, strict=True))
    assert not set(clock.naps) & {high for _, high in waits}, "with jitter, so that callers spread out"


def test_nobody_with_the_same_key_asks_inside_the_window(run: Run, provider: Provider) -> None:
    clock, model = Clock(held=True), "fault-429-after-2-x1"
    provider.now = clock.now
    one = caller(provider, clock)

    async def play() -> list[Outcome]:
        first = asyncio.create_task(ended(one, model))
        await clock.asleep(1)
        rest = [asyncio.create_task(ended(one, model)) for _ in range(20)]
        await clock.asleep(21)
        clock.advance(1.9)
        await asyncio.sleep(0.05)
        assert len(provider.requests) == 1
        while not all(task.done() for task in (first, *rest)):
            clock.advance(0.1)
            await asyncio.sleep(0.001)
        return [task.result() for task in (first, *rest)]

    assert causes(run(play())) == {"answered": 21}
    assert min(provider.times(model)[1:]) >= 1_002.0
    assert len(provider.requests) == 22


def test_another_model_does_not_wait(run: Run, provider: Provider, clock: Clock) -> None:
    one = caller(provider, clock, RetryPolicy(attempts=1))
    run(ended(one, "fault-429-after-60"))
    run(ended(one, "good"))
    assert provider.times("good") == [1_000.0]


@pytest.mark.parametrize("asked", ["61", "99999999", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_no_retry_after_stops_anybody_for_longer_than_a_minute(
    run: Run, provider: Provider, clock: Clock, asked: str
) -> None:
    one = caller(provider, clock)
    model = f"fault-429-after-{asked.replace(' ', '_')}-x1"
    first, *others = [run(ended(one, model)), *run(all_ended(one, model, 15))]
    assert isinstance(first, CallError)
    assert (first.cause, first.status, first.retry_after) == ("provider_error", 429, 60.0)
    assert all(isinstance(other, NotSentError) and other.cause == "provider_error" for other in others)
    assert (len(provider.requests), clock.naps) == (1, [])  # nobody waited, neither the first nor those after it
    clock.advance(60)
    assert causes(run(all_ended(one, model, 15))) == {"answered": 15}


# Many calls


def test_some_429_with_retry_after(run: Run, provider: Provider, clock: Clock) -> None:
    outcomes = run(all_ended(caller(provider, clock, RetryPolicy(attempts=9)), "fault-429-after-2-p30", 40))
    assert causes(outcomes) == {"answered": 40}
    faults = len(provider.requests) - len(provider.paid)
    assert faults > 4
    assert len(provider.requests) == 40 + faults


def test_an_outage_is_not_answered_by_a_storm(run: Run, provider: Provider, clock: Clock) -> None:
    one = caller(provider, clock, at_once=4)
    outcomes = run(all_ended(one, "fault-503", 200))
    assert causes(outcomes) == {"provider_error": 200}
    probes = (clock.time - 1_000) // 10 + 1
    assert len(provider.requests) <= 10 + 4 + probes  # ten faults, what was under way, one every ten seconds
    assert len(provider.requests) < 200
    assert any(isinstance(outcome, NotSentError) for outcome in outcomes)


@pytest.mark.parametrize(("kind", "number", "later"), [("503-s5", 30, 10), ("quota-x1", 1, 60), ("401-x1", 1, 60)])
def test_what_was_given_up_is_asked_again_after_a_while(
    run: Run, provider: Provider, clock: Clock, kind: str, number: int, later: float
) -> None:
    one, model = caller(provider, clock, RetryPolicy(attempts=1)), f"fault-{kind}"
    [first, *_] = run(all_ended(one, model, number))
    asked, second = len(provider.requests), run(ended(one, model))
    assert isinstance(first, CallError)
    assert isinstance(second, NotSentError)
    assert (second.cause, len(provider.requests)) == (first.cause, asked)
    clock.advance(later)
    assert isinstance(run(ended(one, model)), Completion)
    assert causes(run(all_ended(one, model, 20))) == {"answered": 20}


def test_the_slot_is_free_between_attempts(run: Run, provider: Provider) -> None:
    clock = Clock(held=True)
    one = caller(provider, clock, at_once=1)

    async def play() -> Outcome:
        waiting = asyncio.create_task(ended(one, "fault-500-x1"))
        await clock.asleep(1)
        other = await ended(one, "fault-500-x1")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return other

    assert isinstance(run(play()), Completion)


# Money


def test_what_is_spent_is_what_the_provider_bills(run: Run, provider: Provider, clock: Clock) -> None:
    spending = Spending(1.0)
    one = caller(provider, clock, RetryPolicy(attempts=9), script="fault-503-p20")
    outcomes = run(all_ended(one, PRICED, 25, spending))
    assert causes(outcomes) == {"answered": 25}
    price = next(one.usage.cost_usd for one in outcomes if isinstance(one, Completion))
    assert price
    assert spending.spent_usd == pytest.approx(price * len(provider.paid))
    assert (spending.reserved_usd, spending.uncertain_usd, spending.unpriced) == (0.0, 0.0, 0)


def test_the_cap_holds(run: Run, provider: Provider, clock: Clock) -> None:
    one, spending = caller(provider, clock), Spending(0.001)
    outcomes = run(all_ended(one, PRICED, 100, spending))
    assert set(causes(outcomes)) == {"answered", "budget_exhausted"}
    assert len(provider.requests) == len(provider.paid) == causes(outcomes)["answered"]
    assert 0 < spending.spent_usd <= 0.001
    assert spending.reserved_usd == 0.0


# Nothing is left behind


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (a count)


async def quiet() -> tuple[int, int]:
    """Tasks and descriptors when all is done. The library keeps one task that lives as long as the loop."""
    for _ in range(20):
        await asyncio.sleep(0.01)
    gc.collect()
    return len(asyncio.all_tasks()), descriptors()


def test_cancelled_calls_leave_nothing(run: Run, provider: Provider, clock: Clock) -> None:
    one, spending = caller(provider, clock), Spending(1.0)
    gate = one.find_gate("openai/fault-hang")

    async def play() -> None:
        tasks = [asyncio.create_task(one.complete(prompt("fault-hang"), spending)) for _ in range(30)]
        while len(provider.requests) < gate.concurrency.limit:  # noqa: ASYNC110 (counted on another thread)
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended)

    run(play())
    assert gate.concurrency.in_flight == 0
    assert spending.reserved_usd == 0.0
    assert isinstance(run(ended(one, "good")), Completion)


@pytest.mark.parametrize("kind", ["hang", "drip", "reset", "truncated-body", "500"])
def test_faults_leak_neither_tasks_nor_descriptors(run: Run, provider: Provider, clock: Clock, kind: str) -> None:
    one = caller(provider, clock, RetryPolicy(attempts=1, attempt_s=0.3))
    run(ended(one, f"fault-{kind}"))
    before = run(quiet())
    for _ in range(5):
        run(ended(one, f"fault-{kind}"))
    after = run(quiet())
    assert after[0] <= before[0]
    assert after[1] <= before[1] + 2  # a connection that waits for its next request


def test_a_call_takes_what_the_provider_takes(run: Run, provider: Provider, clock: Clock) -> None:
    """Neither what happens before its price is known, such as loading, nor a pause between attempts counts."""

    async def load(_: Prompt) -> None:
        await clock.sleep(12.0)

    model = LiteLLM(api_base=provider.base(), api_key="the-key", reply="auto")
    one = ModelCaller(model, lambda _: ProviderGate(clock), pricing=load)
    judging = Judging(one, Cache(), Judges("openai/fault-429-after-2-x1"))
    events = [{"user": "?"}, {"call": {"name": "f", "arguments": {}}}]
    rubric = {"id": "r", "criteria": [CRITERION]}
    made = plan({"rubric": rubric, "trace": {"format": "callgrade", "tools": [{"name": "f"}], "events": events}})
    [[vote]] = run(judging.answer(made.asks, made.trace, mode="live", spending=Spending())).values()
    assert isinstance(vote, JudgeReply)
    assert (vote.latency_ms, clock.naps[0], len(clock.naps)) == (0, 12.0, 2)


CRITERION = {
    "id": "argument_plausibility",
    "stage": "arguments",
    "check": {"kind": "judge", "judge": "argument_plausibility"},
}
