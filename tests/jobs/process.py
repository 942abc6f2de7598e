"""Batches worked on by real worker processes, which tests kill, stop and start again."""

from __future__ import annotations

import json
import os
import signal
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from service.store.database import Database
from service.store.jobs.jobs import Batch, Batches
from service.store.jobs.submission import Chunk, JobSubmission
from service.store.tables import CHUNKS, RESULTS, WORKERS
from tests.faults.provider import Provider
from tests.forked import Command, Forked, Process
from tests.stores import open_prepared

STEP = {
    "id": "judged",
    "criteria": [{"id": "schema", "stage": "arguments", "check": {"kind": "schema"}},
     {"id": "argument_plausibility", "stage": "arguments",
     "check": {"kind": "judge", "judge": "argument_plausibility"}}],
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}]


def request(number: int = 1, **more: Any) -> dict[str, Any]:
    """A request with one question for a judge, another one for each number."""
    call = {"id": "c", "type": "function", "function": {"name": "refund", "arguments": json.dumps({"order": number})}}
    messages = [{"role": "user", "content": f"Refund order {number}."}, {"role": "assistant", "tool_calls": [call]}]
    return {"rubric": STEP, "trace": {"format": "openai", "messages": messages, "tools": TOOLS}, **more}


def chunks(requests: Sequence[dict[str, Any]], size: int) -> Iterator[Chunk]:
    for first in range(0, len(requests), size):
        part = requests[first : first + size]
        lines = [json.dumps({"custom_id": f"item-{first + n}", "request": one}) for n, one in enumerate(part)]
        yield Chunk(first, len(part), zlib.compress("\n".join(lines).encode()))


@dataclass
class Service:
    """A store, a provider, and the worker processes over them."""

    url: str
    home: Path
    provider: Provider
    settings: dict[str, str] = field(default_factory=dict)
    workers: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database: Database = open_prepared(self.url)
        with self.database.begin() as connection:  # those of an earlier test, whom this one's would find dead
            connection.execute(sa.delete(WORKERS))
        self.batches = Batches(self.database)

    def submit(self, requests: Sequence[dict[str, Any]], *, size: int = 100, tenant: str = "", **more: Any) -> str:
        submission = JobSubmission(tenant=tenant, fingerprint="", hours=24, **more)
        return self.batches.submit(submission, chunks(requests, size)).id

    def find(self, batch: str) -> Batch:
        return self.batches.find("", batch)

    def start(self, *command: str, odd: str = "", anew: bool = False, **more: str) -> Process:
        """A new worker process, by default one that does without litellm; an `odd` one behaves strangely (`tests.jobs.odd`).

        With a `command`, that of callgrade; `anew`: it is not forked but loads what it needs, as everybody's does.
        """
        environ = {name: value for name, value in os.environ.items() if not name.startswith("CALLGRADE_")}
        environ |= {
            "CALLGRADE_HOME": str(self.home),
            "CALLGRADE_DATABASE_URL": self.url.replace("+psycopg", ""),
            "CALLGRADE_JUDGE_MODEL": "openai/gpt-fine",
            "CALLGRADE_JUDGE_API_BASE": self.provider.base(),
            "CALLGRADE_JUDGE_API_KEY": "none",
            **self.settings,
            **more,
        }
        module = "service.cli" if command else "tests.jobs.odd" if odd else "tests.jobs.plain"
        called = Command(
            module, command or ((odd,) if odd else ()), environ, self.home / f"worker-{len(self.workers)}.log"
        )
        self.workers.append(called.anew() if anew else Forked(called))
        return self.workers[-1]

    def log(self, number: int = -1) -> str:
        return (self.home / f"worker-{number % len(self.workers)}.log").read_text()

    def logs(self) -> str:
        return "\n".join(self.log(number) for number in range(len(self.workers)))

    def results(self, batch: str) -> list[Any]:
        """The recorded rows of a batch, by position."""
        chosen = sa.select(RESULTS).where(RESULTS.c.batch == batch).order_by(RESULTS.c.position)
        with self.database.read() as connection:
            return list(connection.execute(chosen))

    def is_idle(self) -> bool:
        with self.database.read() as connection:
            return connection.execute(sa.select(CHUNKS.c.batch).where(CHUNKS.c.state != "done")).first() is None

    def paid(self) -> Counter[int]:
        return Counter(order_of(one.body) for one in self.provider.requests)

    def until(self, holds: Callable[[], bool], *, patience: float = 240.0) -> None:
        """Waits until something holds; fails where it does not come to that, or where the last worker ends by itself."""

        def known() -> bool:
            assert not self.workers or self.workers[-1].poll() is None, self.log()
            return holds()

        until(known, patience=patience, told=lambda: self.log()[-3000:])

    def ended(self, batch: str, *, patience: float = 240.0) -> Batch:
        """The batch once it has ended."""
        until(
            lambda: self.find(batch).ended, patience=patience, told=lambda: f"{self.find(batch)}\n{self.log()[-3000:]}"
        )
        return self.find(batch)


def order_of(body: Any) -> int:
    text = "\n".join(str(message.get("content")) for message in body["messages"])
    return int(text.partition("Refund order ")[2].partition(".")[0])


def until(holds: Callable[[], bool], *, patience: float = 240.0, told: Callable[[], str] = lambda: "") -> None:
    """Waits until something holds; fails with what `told` says where it does not come to that."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < patience, told()
        time.sleep(0.05)


@contextmanager
def service(url: str, home: Path, provider: Provider, **settings: str) -> Iterator[Service]:
    """A service whose workers end with the block."""
    made = Service(url, home, provider, settings)
    try:
        yield made
    finally:
        for worker in made.workers:
            with_signal(worker, signal.SIGCONT)
            worker.kill()
            worker.wait()
        made.database.close()


def with_signal(worker: Process, number: signal.Signals) -> None:
    if worker.poll() is None:
        worker.send_signal(number)


def numbers(results: Iterable[Any]) -> list[int]:
    return [row.position for row in results]
