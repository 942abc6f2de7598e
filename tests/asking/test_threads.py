"""One engine among threads: each has an event loop of its own, and those that ask the same share one request."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Thread

from service.engine import Engine
from service.registry import Registry
from service.settings import Settings
from service.wiring import build_judging
from tests.asking.test_few_faults import right
from tests.faults.provider import Provider

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
