"""Many traces at once through one engine: faults leave open what they belong to, and threads with loops share requests."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from service import Report
from service.engine import Engine
from service.registry import Registry
from service.settings import Settings
from service.wiring import build_judging
from tests.conftest import Run
from tests.faults.provider import Provider

TRACES = 100


def right(number: int) -> dict[str, Any]:
    """A trace with nothing wrong, whose answer a judge must look at."""
    call = {"name": "price", "arguments": {"order": number}}
    told = f"Order {number} comes to the amount you see."
    events = [{"user": f"What does order {number} cost?"}, {"call": call, "result": {"usd": 54}}, {"assistant": told}]
    expected = {"calls": [{"tool": "price", "args": {"order": number}}]}
    return {"trace": {"format": "callgrade", "events": events}, "expected": expected}


@pytest.mark.parametrize("fault", ["refusal", "500"])
def test_only_the_traces_of_failed_replies_are_undecided(
    run: Run, provider: Provider, tmp_path: Path, fault: str
) -> None:
    model = f"fault-{fault}-p3"
    settings = Settings(
        judge_model=f"openai/{model}",
        judge_api_base=provider.base(),
        judge_api_key="none",
        judge_attempts=1,
        home=tmp_path,
    )
    engine = Engine(Registry(), judging=build_judging(settings))

    async def score_all() -> list[Report]:
        return await asyncio.gather(*[engine.score_async(right(number)) for number in range(TRACES)])

    verdicts = Counter(report.verdict for report in run(score_all()))
    run(engine.close())
    dice = random.Random(f"{provider.seed} {model}")  # noqa: S311 (as the provider throws them)
    failed = sum(dice.random() < 0.03 for _ in provider.requests)
    assert len(provider.requests) == TRACES
    assert 0 < failed < 10
    assert verdicts == {"pass": TRACES - failed, "undecided": failed}


THREADS, LOOPS = 30, 3
PATIENCE_S = 120.0
"""Seconds after which a thread counts as hung."""


def test_threads_with_loops_of_their_own_share_one_request(provider: Provider, tmp_path: Path) -> None:
    provider.latency = 0.2
    address = {"judge_api_base": provider.base(), "judge_api_key": "none"}
    settings = Settings(judge_model="openai/good", home=tmp_path, **address)
    engine = Engine(Registry(), judging=build_judging(settings))
    verdicts: list[str] = []

    def ask() -> None:
        verdicts.extend(asyncio.run(engine.score_async(right(1))).verdict for _ in range(LOOPS))

    threads = [Thread(target=ask, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert (verdicts, len(provider.requests)) == (["pass"] * THREADS * LOOPS, 1)
    asyncio.run(engine.close())
