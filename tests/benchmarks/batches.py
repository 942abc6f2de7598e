"""(j) to (o): batches, against what they are made of: bare calls, the engine in one process, a semaphore around a sleep."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from service import heap
from service.asking.budget.reservations import Spending
from service.asking.cached_replies import NoCache
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.core.judging.prompts import Completion, Prompt
from service.engine import Engine, report_json
from service.jobs.items import ItemScorer, WaitingItem, widen_limits
from service.jobs.runner import Runner, Work
from service.jobs.worker import Worker, keep_working
from service.reading.request import read_request
from service.reading.strict_json import Limits
from service.registry import Registry
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ChunkItem, OutcomeRow
from tests.benchmarks import judging
from tests.faults.provider import Provider
from tests.jobs.process import Service, request, service, until

SERVER = os.environ.get("CALLGRADE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")
PORT = 8932


def measure() -> None:
    """Prints each ratio."""
    _against_bare_calls()
    for store in (sqlite, postgres):
        with store() as (url, folder):
            _around_a_sleep(url, folder)
    _against_the_engine()
    _accepting()
    _two_workers()
    _beside_requests()


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


def _timed(run: Service, requests: Sequence[dict[str, Any]], *, size: int = 250) -> float:
    """Items a second of one batch, once the workers are warm."""
    run.ended(run.submit([request(10**6 + n) for n in range(64)], size=8), patience=300)
    start = time.perf_counter()
    ended = run.ended(run.submit(requests, size=size), patience=1_200)
    assert ended.request_counts.completed == len(requests), ended
    return len(requests) / (time.perf_counter() - start)


def _said(text: str, value: float, unit: str) -> None:
    print(f"    {text:<66}{value:8.2f} {unit}" if value < 10 else f"    {text:<66}{value:8.0f} {unit}")


def _against_bare_calls(items: int = 10_000, at_once: int = 64) -> None:
    print(f"(j) a judged batch of {items} items, one question each, {at_once} at once, a provider that takes 50 ms")
    with _provider(0.05) as base:
        bare = asyncio.run(_bare(base, items // 4, at_once))
        with sqlite() as (url, folder), serve_store(url, folder, base) as run:
            run.start("worker", anew=True)
            batch = _timed(run, [request(n) for n in range(items)])
    _said("bare litellm calls", bare, "calls/s")
    _said("the batch", batch, "items/s")
    _said("ratio", batch / bare, "")


async def _bare(base: str, calls: int, at_once: int) -> float:
    engine = Engine(Registry(), judging=Judging(DemoJudge(), NoCache(), Judges("openai/good")))
    import litellm

    turns = judging.turns(engine) | {"api_base": base}
    places = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with places:
            await litellm.acompletion(**turns, max_retries=0)

    await asyncio.gather(*[one() for _ in range(at_once)])
    start = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(calls)])
    return calls / (time.perf_counter() - start)


class _Sleep:
    """Work that is nothing but a wait."""

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        plain = read_request(request(0))
        return [WaitingItem(item, "", plain, None) for item in items]

    async def finish(self, waiting: WaitingItem, tenant: str, batch_spending: Spending, *, last: bool) -> OutcomeRow:
        await asyncio.sleep(0.05)
        return OutcomeRow(waiting.item.position, True, '{"index":0}')


class _Sleeping(DemoJudge):
    """A model that takes its time and is right."""

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str = "") -> Completion:
        await asyncio.sleep(0.05)
        return await super().complete(prompt, spending)


def _around_a_sleep(url: str, folder: Path, items: int = 10_000, at_once: int = 500) -> None:
    name = url.partition(":")[0].partition("+")[0]
    print(f"(k) {items} items that take 50 ms, {at_once} at once, second batch on {name}")
    bare = asyncio.run(_semaphore(items, at_once))
    _said("a semaphore and a sleep", bare, "items/s")
    engine = Engine(Registry(), judging=Judging(_Sleeping(), NoCache(), Judges("openai/good")))
    works: dict[str, Work] = {"the worker around the sleep": _Sleep()}
    works["the same with all of judged scoring"] = ItemScorer(engine, widen_limits(Limits()))
    for told, work in works.items():
        with serve_store(url, folder, "") as run:
            found = asyncio.run(_worked(run, work, items, at_once))
        _said(told, found, "items/s")
        _said("ratio", found / bare, "")


async def _semaphore(items: int, at_once: int) -> float:
    places = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with places:
            await asyncio.sleep(0.05)

    start = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(items)])
    return items / (time.perf_counter() - start)


async def _worked(run: Service, work: Work, items: int, at_once: int, size: int = 250) -> float:
    heap.claim_process()  # as a worker does
    owned = Chunks(run.database, "bench")
    runner = Runner(owned, work, in_flight=at_once)
    requests = [request(n) for n in range(items)]
    worker = Worker(owned, runner, _Silent(), most=2 + 2 * (at_once // size))
    async with keep_working(worker, owned, sweep=lambda: None, grace=1.0):
        taken = 1.0
        for _ in range(2):
            batch = await asyncio.to_thread(run.submit, requests, size=size)
            start = time.perf_counter()
            while not (await asyncio.to_thread(run.find, batch)).ended:  # noqa: ASYNC110 (nothing tells of it)
                await asyncio.sleep(0.05)
            taken = time.perf_counter() - start
    return items / taken


class _Silent:
    async def notify(self, _: str) -> None:
        raise AssertionError("no batch here has a webhook")


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
        batch = _timed(run, requests)
    _said("the engine", alone, "items/s")
    _said("the batch", batch, "items/s")
    _said("ratio", batch / alone, "")


def _accepting(items: int = 100_000) -> None:
    with sqlite() as (_, folder), _served(folder) as (process, port):
        body = folder / "body.jsonl"
        with body.open("w") as file:
            for n in range(items):
                file.write(json.dumps(request(n)) + "\n")
        _submit(port, [request(0)])
        before, start = _memory(process.pid), time.perf_counter()
        with body.open("rb") as file:
            _asked(port, "POST", "/v1/batches", file)
        print(f"(m) {items} items of {body.stat().st_size // items} bytes submitted over HTTP in one request")
        _said("time until it is accepted", time.perf_counter() - start, "s")
        _said("more memory than before, at most", _memory(process.pid) - before, "MB")


def _submit(port: int, requests: Sequence[dict[str, Any]]) -> str:
    return _asked(port, "POST", "/v1/batches", "".join(json.dumps(one) + "\n" for one in requests))["id"]


def _asked(port: int, method: str, path: str, body: str | BufferedReader | None = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, body, {"content-type": "application/x-ndjson"})
    answer = connection.getresponse()
    assert answer.status < 300, answer.read()
    return json.loads(answer.read())


@contextmanager
def _served(folder: Path, **settings: str) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    environment = os.environ | {"CALLGRADE_HOME": str(folder), "CALLGRADE_WORKER": "false"} | settings
    command = [sys.executable, "-m", "service.cli", "serve", "--port", "0"]
    told = folder / "serve.log"
    with told.open("wb") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            until(lambda: "listening" in told.read_text())
            yield process, json.loads(next(line for line in told.open() if "listening" in line))["port"]
        finally:
            process.terminate()


def _memory(pid: int) -> float:
    """The most memory that a process has had, in MB."""
    found = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(found.split()[1]) / 1024


def _two_workers(items: int = 4_000) -> None:
    print(f"(n) {items} judged items on postgresql, 16 at once in each worker, a provider that takes 50 ms")
    requests = [request(n) for n in range(items)]
    rates: list[float] = []
    for workers in (1, 2):
        with _provider(0.05) as base, postgres() as (url, folder), _workers(url, folder, base, workers) as run:
            rates.append(_timed(run, requests, size=20))
        _said(f"with {workers}", rates[-1], "items/s")
    _said("ratio", rates[1] / rates[0], "")


@contextmanager
def _workers(url: str, folder: Path, base: str, number: int) -> Generator[Service]:
    with serve_store(url, folder, base, CALLGRADE_BATCH_IN_FLIGHT="16") as run:
        for _ in range(number):
            run.start("worker", "--workers", "1", anew=True)
        run.until(lambda: run.logs().count('"working"') == number)
        yield run


def _beside_requests(rate: float = 100.0, seconds: float = 10.0) -> None:
    print(f"(o) POST /v1/score, {rate:.0f} a second on schedule, idle and while its own worker is at a judged batch")
    with tempfile.TemporaryDirectory() as folder, _provider(0.05) as base:
        judged = {"CALLGRADE_JUDGE_MODEL": "openai/good", "CALLGRADE_JUDGE_API_BASE": base}
        settings = {"CALLGRADE_WORKER": "true", "CALLGRADE_JUDGE_API_KEY": "none", **judged}
        with _served(Path(folder), **settings) as (_, port):
            first = _submit(port, [request(0)])
            until(lambda: _completed(port, first) == 1)  # the worker is there, and has loaded what it needs
            asyncio.run(_latencies(port, 20.0, 2.0))
            idle = _p99(asyncio.run(_latencies(port, rate, seconds)))
            batch = _submit(port, [request(n) for n in range(1, 20_000)])
            until(lambda: _completed(port, batch) >= 200)
            busy = _p99(asyncio.run(_latencies(port, rate, seconds)))
            assert _completed(port, batch) < 19_000
    _said("p99 idle", idle * 1_000, "ms")
    _said("p99 beside the batch", busy * 1_000, "ms")
    _said("ratio", busy / idle, "")


def _completed(port: int, batch: str) -> int:
    return _asked(port, "GET", f"/v1/batches/{batch}")["request_counts"]["completed"]


def _p99(found: list[float]) -> float:
    return sorted(found)[int(len(found) * 0.99)]


async def _latencies(port: int, rate: float, seconds: float) -> list[float]:
    """Seconds from when each request was due to its answer: one that has to wait is not left out."""
    import httpx

    body = json.dumps(request(0, judges="off")).encode()
    start = time.perf_counter()
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=64)) as client:

        async def one(due: float) -> float:
            await asyncio.sleep(max(0.0, start + due - time.perf_counter()))
            answer = await client.post(
                f"http://127.0.0.1:{port}/v1/score", content=body, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 200
            return time.perf_counter() - start - due

        return list(await asyncio.gather(*[one(n / rate) for n in range(int(rate * seconds))]))
