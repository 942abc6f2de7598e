"""Batches judged through the batch endpoints of providers, by workers that die at every step: nothing is lost or paid twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.store.jobs.workers import Workers
from tests.faults.batch_endpoints import PROVIDERS, DroppedError, Endpoints, playing
from tests.faults.provider import Provider
from tests.jobs.process import Service, numbers, request, service, until

USUAL_USD = {"openai": 0.00021, "anthropic": 0.0015}
"""What a reply costs in a call, by the price map."""

KEYS = ("OPENAI", "ANTHROPIC")


@contextmanager
def running(folder: Path, endpoints: Endpoints, url: str | None = None) -> Iterator[Service]:
    with playing(endpoints):
        settings = {f"{name}_API_KEY": "sk-test" for name in KEYS} | {
            "CALLGRADE_JUDGE_MODEL": endpoints.model,
            "CALLGRADE_JUDGE_API_BASE": endpoints.base,
            "CALLGRADE_JUDGE_API_KEY": "sk-test",
            "CALLGRADE_GRACEFUL_SECONDS": "0",
        }
        with service(url or f"sqlite:///{folder}/store.db", folder, Provider(), **settings) as run:
            yield run


def submit(run: Service, items: int, *, size: int, first: int = 0, **options: Any) -> str:
    """The id of a new batch with a question for each item, from the order `first` on."""
    limits = {name: options.pop(name) for name in ("max_questions", "budget_usd") if name in options}
    options = {"judging": "batch", "judging_hours": 24.0, "unanswered": "live"} | options
    return run.submit([request(first + n) for n in range(items)], size=size, options=options, **limits)


def take_over(run: Service) -> None:
    """Gives back what a worker owned that was killed: others would notice after ten seconds."""
    workers = Workers(run.database)
    for worker in workers.list_workers():
        workers.reclaim(worker)


def live_through(run: Service, endpoints: Endpoints, batch: str, kills: list[str]) -> None:
    """Kills a worker at each of these steps, and starts another; the last one ends the batch.

    A request does not take effect if its sender dies before it is `in`; it does if the sender dies when it is `done`.
    """
    left, killed = list(kills), list[str]()

    def strike(step: str) -> None:
        if (
            left and left[0] == step and len(killed) < len(run.workers)
        ):  # more requests of a killed one may be on their way
            killed.append(left.pop(0))
            run.workers[-1].kill()
            if step.endswith(":in"):
                raise DroppedError

    endpoints.hook = strike
    for _ in kills:
        worker = run.start(odd="batched")
        until(lambda worker=worker: worker.poll() is not None, told=lambda: f"{left} {run.log()[-3000:]}")
        take_over(run)
    endpoints.hook = lambda _: None
    run.start(odd="batched")
    run.ended(batch)


FILES = ["upload:in", "upload:done"]
CREATED = ["create:in", "create:done", "list:in", "look:in", "look:done"]
RESULTS = ["results:in", "results:done"]
STEPS = {
    "openai": [*FILES, *CREATED, *RESULTS, "look:done"],
    "anthropic": ["create:in", *CREATED, *RESULTS, "look:done", "results:done"],
}
"""Ten steps at which workers die, for each provider."""


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
    costs = {round(report["provenance"]["cost_usd"], 9) for report in reports}
    assert costs <= {round(USUAL_USD[endpoints.name] / 2, 9), 0.0}


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        ("openai", ["upload:done", "create:in", "create:done", "results:done"]),
        ("anthropic", ["create:done"]),
    ],
)
def test_a_worker_that_dies_at_any_step_loses_nothing(tmp_path: Path, name: str, kills: list[str]) -> None:
    endpoints = Endpoints(name)
    with running(tmp_path, endpoints) as run:
        batch = submit(run, 12, size=12)
        live_through(run, endpoints, batch, kills)
        check(run, endpoints, batch, 12)


def odd(number: int) -> bool:
    return number % 2 == 1


def never(_: int) -> bool:
    return False


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, int, int, float]] = {
    # what the provider does; the options of the batch; its status; lines that are submitted, calls, lowest coverage
    "failed lines are asked live": ({"fails": odd}, {}, "completed", 6, 3, 1.0),
    "or left open": ({"fails": odd}, {"unanswered": "open"}, "completed", 6, 0, 0.5),
    "a repair is asked live": ({"breaks": odd}, {}, "completed", 6, 3, 1.0),
    "what is late is cancelled, and asked live": ({"looks": -1}, {"judging_hours": 1e-5}, "completed", 6, 6, 1.0),
    "a provider that refuses files": ({"refuses": "upload"}, {}, "completed", 0, 6, 1.0),
    "a provider that refuses batches": ({"refuses": "create"}, {}, "completed", 0, 6, 1.0),
    "too few questions to wait for": ({}, {"judging": "auto"}, "completed", 0, 6, 1.0),
    "live": ({}, {"judging": "live"}, "completed", 0, 6, 1.0),
    "a limit of questions": ({}, {"max_questions": 5}, "paused_budget", 0, 0, 1.0),
    "a budget": ({}, {"budget_usd": 1e-6}, "paused_budget", 0, 0, 1.0),
}


@pytest.mark.needs_postgres
def test_what_a_batch_does_not_answer(own_postgres_url: str, tmp_path: Path) -> None:
    endpoints = Endpoints("openai")
    with running(tmp_path, endpoints, own_postgres_url) as run:
        run.start(odd="batched")
        for place, (name, (behaviour, options, status, lines, calls, coverage)) in enumerate(CASES.items(), start=1):
            endpoints.looks, endpoints.fails, endpoints.breaks, endpoints.refuses = 1, never, never, ""
            for field, value in behaviour.items():
                setattr(endpoints, field, value)
            endpoints.live.clear()
            before = len(endpoints.batches)
            batch = submit(run, 6, size=6, first=100 * place, **options)
            run.until(lambda batch=batch, status=status: run.find(batch).status == status)
            submitted = sum(len(one.lines) for one in [*endpoints.batches.values()][before:])
            reports = [json.loads(row.line)["report"] for row in run.results(batch)]
            lowest = min([report["coverage"] for report in reports], default=1.0)
            assert (submitted, sum(endpoints.live.values()), lowest) == (lines, calls, coverage), name


def test_a_cancelled_batch_is_cancelled_at_the_provider(store_url: str, tmp_path: Path) -> None:
    endpoints = Endpoints("anthropic", looks=-1)
    with running(tmp_path, endpoints, store_url) as run:
        run.start(odd="batched")
        batch = submit(run, 4, size=4)
        run.until(lambda: "look:done" in endpoints.steps)
        run.batches.cancel("", batch)
        run.until(lambda: all(one.cancelled for one in endpoints.batches.values()))
        run.until(lambda: run.find(batch).uncertain_usd > 0.0 and not run.find(batch).cost_usd)
        assert run.ended(batch).status == "cancelled"
        assert run.find(batch).questions == 4


@pytest.mark.chaos
@pytest.mark.parametrize("name", PROVIDERS)
def test_ten_workers_die_over_two_thousand_items(tmp_path: Path, name: str) -> None:
    endpoints = Endpoints(name, looks=3)
    with running(tmp_path, endpoints) as run:
        batch = submit(run, 2_000, size=250)
        live_through(run, endpoints, batch, STEPS[name])
        check(run, endpoints, batch, 2_000)
