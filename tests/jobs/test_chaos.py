"""Four workers that share a store while they are killed and frozen: nothing is lost, and nothing is recorded or ended twice."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import sqlalchemy as sa

from service.store.database import insist
from service.store.jobs.workers import SILENT_S
from service.store.tables import BATCHES, CHUNKS
from tests.faults.provider import Provider, serving
from tests.forked import Process
from tests.jobs.process import Service, numbers, request, service, until, with_signal

WORKERS = 4
IN_FLIGHT = 16
ITEMS, SIZE = 200, 20
"""Items of one batch, and of one chunk."""
OPEN_BATCHES = 8
FAULTS: dict[str, int] = {"kills": 20, "freezes": 10}
FROZEN_S = SILENT_S + 3
"""Seconds that a worker stands still: longer than the others wait for its beats."""


@dataclass
class Chaos:
    """A service whose workers fare badly, and whose batches do not end before that does."""

    run: Service
    dice: random.Random
    batches: list[str] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)
    frozen: dict[int, float] = field(default_factory=dict)
    """By the number of a worker, when it goes on."""

    def submit(self) -> None:
        """Keeps so many batches open."""
        open_batches = sum(not self.run.find(batch).ended for batch in self.batches[-2 * OPEN_BATCHES :])
        for _ in range(OPEN_BATCHES - open_batches):
            first = len(self.batches) * ITEMS
            requests = [request(first + n) for n in range(ITEMS)]
            self.batches.append(insist(lambda: self.run.submit(requests, size=SIZE)))  # noqa: B023 (called at once)

    def kill(self) -> None:
        number = self.dice.randrange(WORKERS)
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self.run.start()
        time.sleep(self.dice.uniform(1.0, 3.0))

    def freeze(self) -> None:
        """One stands still for a while, beside one other at most."""
        while len(self.frozen) > 1:
            self.wake()
        number = self.dice.choice([n for n in range(WORKERS) if n not in self.frozen])
        with_signal(self.workers[number], signal.SIGSTOP)
        self.frozen[number] = time.monotonic() + FROZEN_S
        time.sleep(3.0)

    def wake(self) -> None:
        """The one that has stood still longest goes on."""
        number = min(self.frozen, key=lambda one: self.frozen[one])
        time.sleep(max(0.0, self.frozen.pop(number) - time.monotonic()))
        with_signal(self.workers[number], signal.SIGCONT)


@pytest.mark.chaos
@pytest.mark.needs_postgres
@pytest.mark.parametrize("fault", ["kills", "freezes"])
def test_nothing_is_lost_and_nothing_is_done_twice(
    store_url: str, tmp_path: Path, fault: Literal["kills", "freezes"]
) -> None:
    provider = Provider(latency=0.2)
    settings = {"CALLGRADE_BATCH_IN_FLIGHT": f"{IN_FLIGHT}", "CALLGRADE_BATCH_CHUNK": f"{SIZE}"}
    with serving(provider), service(store_url, tmp_path, provider, **settings) as run:
        chaos = Chaos(run, random.Random(fault))
        chaos.workers = [run.start() for _ in range(WORKERS)]
        run.until(lambda: run.logs().count('"working"') == WORKERS)
        start = time.monotonic()
        for _ in range(FAULTS[fault]):
            chaos.submit()
            (chaos.kill if fault == "kills" else chaos.freeze)()
        while chaos.frozen:
            chaos.wake()
        seconds = time.monotonic() - start
        until(lambda: all(run.find(batch).ended for batch in chaos.batches), patience=600.0, told=run.logs)
        items = ITEMS * len(chaos.batches)
        paid = run.paid()
        again = sum(paid.values()) - len(paid)
        taken = run.logs().count('"taking over"')
        print(f"{fault}: {items} items, {again} paid again, {taken} taken over, {seconds:.0f} s of faults")
        lost = [batch for batch in chaos.batches if numbers(run.results(batch)) != list(range(ITEMS))]
        assert (lost, set(paid)) == ([], set(range(items)))
        ended = [run.find(batch) for batch in chaos.batches]
        assert {one.request_counts.completed for one in ended} == {ITEMS}
        assert sum(one.questions for one in ended) >= len(provider.requests)
        with run.database.read() as connection:
            off = sa.select(CHUNKS.c.batch).where(CHUNKS.c.completed != CHUNKS.c.size)
            assert connection.execute(off).all() == []
            assert set(connection.execute(sa.select(BATCHES.c.open_chunks)).scalars()) == {0}
        assert again <= FAULTS[fault] * IN_FLIGHT
        assert taken >= FAULTS[fault] // 2
        run.until(run.is_idle)
