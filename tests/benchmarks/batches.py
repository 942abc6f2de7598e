"""(j), (l), (n): batches, against what they are made of: bare calls, the engine in one process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

from service.asking.cache.guard import Cache
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.engine import Engine, report_json
from service.registry import Registry
from tests.benchmarks import judging
from tests.benchmarks.http import read_cpu
from tests.faults.provider import Provider
from tests.jobs.process import Service, request, service

SERVER = os.environ.get("CALLGRADE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")
PORT = 8932


def measure() -> None:
    """Prints each ratio."""
    _against_bare_calls()
    _against_the_engine()
    _two_workers()


@contextmanager
def sqlite() -> Generator[tuple[str, Path]]:
    """A new store, by its URL, and a folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/store.db", Path(folder)


@contextmanager
def postgres() -> Generator[tuple[str, Path]]:
    """As `sqlite`."""
    name = "callgrade_bench"
    with tempfile.TemporaryDirectory() as folder, psycopg.connect(SERVER, dbname="postgres", autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")  # pyright: ignore[reportArgumentType]
        server.execute(f"CREATE DATABASE {name}")  # pyright: ignore[reportArgumentType]
        yield f"{urlsplit(SERVER)._replace(scheme='postgresql+psycopg').geturl()}/{name}", Path(folder)
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")  # pyright: ignore[reportArgumentType]


@contextmanager
def _provider(latency: float = 0.0) -> Generator[str]:
    command = [sys.executable, "-m", "tests.faults.provider", str(PORT), str(latency)]
    with subprocess.Popen(command) as process:
        try:
            time.sleep(1.0)
            yield f"http://127.0.0.1:{PORT}/v1"
        finally:
            process.kill()


@contextmanager
def serve_store(url: str, folder: Path, base: str, **settings: str) -> Generator[Service]:
    """The service over a store, whose judges are at `base`."""
    with service(url, folder, Provider(), CALLGRADE_JUDGE_API_BASE=base, **settings) as run:
        yield run


class Taken(NamedTuple):
    """What a batch or bare calls took."""

    rate: float
    """Items a second."""
    cpu_ms: float
    """Milliseconds of processor time of the workers, or of the process that calls, for each."""


def _timed(run: Service, requests: Sequence[dict[str, Any]], *, size: int = 250) -> Taken:
    """One batch, once the workers are warm."""
    run.ended(run.submit([request(10**6 + n) for n in range(64)], size=8), patience=300)
    start, cpu = time.perf_counter(), sum(read_cpu(one.pid) for one in run.workers)
    batch = run.submit(requests, size=size)
    while not run.find(batch).ended:  # seldom, as it takes of the cores that are measured
        time.sleep(0.25)
    ended = run.find(batch)
    assert ended.request_counts.completed == len(requests), ended
    spent = sum(read_cpu(one.pid) for one in run.workers) - cpu
    return Taken(len(requests) / (time.perf_counter() - start), 1e3 * spent / len(requests))


def _said(text: str, value: float, unit: str) -> None:
    print(f"    {text:<66}{value:8.2f} {unit}" if value < 10 else f"    {text:<66}{value:8.0f} {unit}")


def _against_bare_calls(items: int = 10_000, at_once: int = 64) -> None:
    print(f"(j) a judged batch of {items} items, one question each, {at_once} at once, a provider that takes 50 ms")
    with _provider(0.05) as base:
        bare = asyncio.run(_bare(base, items // 4, at_once))
        with sqlite() as (url, folder), serve_store(url, folder, base) as run:
            run.start("worker", anew=True)
            batch = _timed(run, [request(n) for n in range(items)])
    _said("bare litellm calls", bare.rate, "calls/s")
    _said("", bare.cpu_ms, "ms of CPU")
    _said("the batch", batch.rate, "items/s")
    _said("", batch.cpu_ms, "ms of CPU")
    _said("ratio", batch.rate / bare.rate, "")
    _said("ratio of the CPU times", bare.cpu_ms / batch.cpu_ms, "")


async def _bare(base: str, calls: int, at_once: int) -> Taken:
    engine = Engine(Registry(), judging=Judging(DemoJudge(), Cache(), Judges("openai/good")))
    import litellm

    turns = judging.turns(engine) | {"api_base": base}
    places = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with places:
            await litellm.acompletion(**turns, max_retries=0)

    await asyncio.gather(*[one() for _ in range(at_once)])
    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[one() for _ in range(calls)])
    return Taken(calls / (time.perf_counter() - start), 1e3 * (time.process_time() - cpu) / calls)


def _against_the_engine(items: int = 10_000) -> None:
    print(f"(l) an unjudged batch of {items} items on sqlite, against the engine in one process")
    requests = [request(n) for n in range(items)]
    lines = [json.dumps(one) for one in requests[:2_000]]
    engine = Engine(Registry())
    start = time.perf_counter()
    for line in lines:
        report_json(engine.score(json.loads(line)))
    alone = len(lines) / (time.perf_counter() - start)
    with sqlite() as (url, folder), serve_store(url, folder, "", CALLGRADE_JUDGE_MODEL="") as run:
        run.start("worker", "--workers", "1", anew=True)
        batch = _timed(run, requests).rate
    _said("the engine", alone, "items/s")
    _said("the batch", batch, "items/s")
    _said("ratio", batch / alone, "")


def _two_workers(items: int = 4_000) -> None:
    print(f"(n) {items} judged items on postgresql, 16 at once in each worker, a provider that takes 50 ms")
    requests = [request(n) for n in range(items)]
    rates: list[float] = []
    for workers in (1, 2):
        with _provider(0.05) as base, postgres() as (url, folder), _workers(url, folder, base, workers) as run:
            taken = _timed(run, requests, size=20)
        rates.append(taken.rate)
        _said(f"with {workers}", taken.rate, "items/s")
        _said("", taken.cpu_ms, "ms of CPU of the workers")
    _said("ratio", rates[1] / rates[0], "")


@contextmanager
def _workers(url: str, folder: Path, base: str, number: int) -> Generator[Service]:
    with serve_store(url, folder, base, CALLGRADE_BATCH_IN_FLIGHT="16") as run:
        for _ in range(number):
            run.start("worker", "--workers", "1", anew=True)
        run.until(lambda: run.logs().count('"working"') == number)
        yield run
