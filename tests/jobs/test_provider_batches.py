"""Batches judged through the batch endpoints of providers, by workers that die at every step: nothing is lost or paid twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.store.jobs.workers import WorkerRecord, Workers
from tests.faults.batch_endpoints import PROVIDERS, Endpoints, playing
from tests.faults.provider import Provider
from tests.jobs.process import Service, numbers, request, service

USUAL_USD = {"openai": 0.00021, "anthropic": 0.0015, "gemini": 0.00055, "mistral": 0.00021, "azure": 0.00021}
"""What a reply costs in a call, by the price map."""

KEYS = ("OPENAI", "AZURE", "MISTRAL", "ANTHROPIC", "GEMINI")


@contextmanager
def running(folder: Path, endpoints: Endpoints, **settings: str) -> Iterator[Service]:
    """A store and workers over a provider's endpoints."""
    with playing(endpoints):
        settings |= {f"{name}_API_KEY": "sk-test" for name in KEYS} | {
            "CALLGRADE_JUDGE_MODEL": endpoints.model,
            "CALLGRADE_JUDGE_API_BASE": endpoints.base,
            "CALLGRADE_JUDGE_API_KEY": "sk-test",
            "CALLGRADE_GRACEFUL_SECONDS": "0",
        }
        with service(f"sqlite:///{folder}/store.db", folder, Provider(), **settings) as run:
            yield run


def submit(run: Service, items: int, *, size: int, **options: Any) -> str:
    """The id of a new batch with a question for each item."""
    options = {"judging": "batch", "judging_hours": 24.0, "unanswered": "live"} | options
    return run.submit([request(n) for n in range(items)], size=size, options=options)


def take_over(run: Service) -> None:
    """Gives back what a worker owned that was killed: others would notice after ten seconds."""
    workers = Workers(run.database)
    for worker in workers.list_workers():
        workers.reclaim(worker)
    for owner in workers.list_owners():
        workers.reclaim(WorkerRecord(owner, 0))


def live_through(run: Service, endpoints: Endpoints, batch: str, kills: list[str]) -> None:
    """Kills a worker at each of these steps, and starts another; the last one ends the batch."""
    left = list(kills)

    def strike(step: str) -> None:
        if left and left[0] == step:
            left.pop(0)
            run.workers[-1].kill()

    endpoints.hook = strike
    for _ in kills:
        worker = run.start(module="tests.jobs.batched")
        run_until_dead(run, worker, batch)
        take_over(run)
    assert left == []
    run.start(module="tests.jobs.batched")
    run.ended(batch)


def run_until_dead(run: Service, worker: Any, batch: str) -> None:
    """Waits until a worker is killed."""
    from tests.jobs.process import until

    until(lambda: worker.poll() is not None, patience=25.0, told=lambda: f"{run.find(batch)}\n{run.log()[-3000:]}")


WITH_FILES = ["upload:in", "upload:done", "create:in", "create:done", "look:in", "look:done", "results:in", "results:done"]
WITHOUT_FILES = ["create:in", "create:done", "look:in", "look:done"]
STEPS = {"openai": WITH_FILES, "azure": WITH_FILES, "mistral": WITH_FILES, "gemini": WITHOUT_FILES,
         "anthropic": [*WITHOUT_FILES, "results:in", "results:done"]}  # fmt: skip


def check(run: Service, endpoints: Endpoints, batch: str, items: int) -> None:
    """That each item was recorded once, by a reply that was paid for once, at half the price."""
    ended = run.find(batch)
    assert (ended.status, ended.request_counts.completed) == ("completed", items), ended
    results = run.results(batch)
    assert numbers(results) == list(range(items))
    reports = [json.loads(row.line)["report"] for row in results]
    assert {report["coverage"] for report in reports} == {1.0}
    assert endpoints.billed() == dict.fromkeys(range(items), 1)
    assert not endpoints.live
    files = [one.file for one in endpoints.batches.values() if one.file]
    assert len(set(files)) == len(files)
    assert len(endpoints.files) == len(files)
    costs = {round(report["provenance"]["judge"]["cost_usd"], 9) for report in reports}
    assert costs <= {round(USUAL_USD[endpoints.name] / 2, 9), 0.0}


@pytest.mark.parametrize("name", ["openai"])
def test_a_worker_that_dies_at_any_step_loses_nothing(tmp_path: Path, name: str) -> None:
    endpoints = Endpoints(name)
    with running(tmp_path, endpoints) as run:
        batch = submit(run, 12, size=12)
        live_through(run, endpoints, batch, STEPS[name])
        check(run, endpoints, batch, 12)
