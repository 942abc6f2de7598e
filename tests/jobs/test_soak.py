"""Half an hour of everything at once: scores, batches, kills, storms, people who leave. Nothing is lost, and nothing grows."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, numbers, request, service, until

SECONDS = float(os.environ.get("CALLGRADE_SOAK_S", "1800"))
ITEMS = 300
"""Items of one batch."""
PRICED = "gpt-4o-mini"
PRICE_IN, PRICE_OUT = 0.15e-6, 0.6e-6
GROWTH = 1.3
"""How much larger than after the first fifth of the time anything may be at the end."""


@dataclass
class Soak:
    """The load, and what came of it."""

    run: Service
    port: int
    over: threading.Event = field(default_factory=threading.Event)
    batches: list[str] = field(default_factory=list)
    scored: int = 0
    refused: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, *bodies: object) -> tuple[int, bytes]:
        """Sends one body as a JSON document, several as JSON Lines."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            given = "\n".join(map(json.dumps, bodies))
            media = "application/x-ndjson" if len(bodies) > 1 else "application/json"
            connection.request(method, path, given, {"content-type": media})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def score(self, dice: random.Random) -> None:
        status, told = self.ask("POST", "/v1/score", request(dice.randrange(10**9)))
        self.scored += status == 200
        if status != 200:
            self.refused.append(f"{status} {told[:200]!r}")

    def submit(self, dice: random.Random) -> None:
        first = dice.randrange(10**9)
        items = [{"custom_id": f"i{n}", **request(first + n)} for n in range(ITEMS)]
        status, told = self.ask("POST", "/v1/batches", *items)
        if status in (200, 201, 202):
            self.batches.append(json.loads(told)["id"])
        else:
            self.refused.append(f"{status} {told[:200]!r}")
        self.over.wait(8)

    def leave(self, dice: random.Random) -> None:
        """Goes away in the middle of a request, or of events."""
        body = json.dumps(request(dice.randrange(10**9))).encode()
        path = (
            f"/v1/batches/{dice.choice(self.batches)}/events" if self.batches and dice.random() < 0.5 else "/v1/score"
        )
        method = "GET" if path.endswith("events") else "POST"
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            given = body if method == "POST" else b""
            connection.sendall(f"{head}content-length: {len(given)}\r\n\r\n".encode() + given)
            self.over.wait(dice.random() / 5)

    def kill(self, dice: random.Random) -> None:
        self.over.wait(20 + 20 * dice.random())
        self.run.workers[-1].kill()
        self.run.workers[-1].wait()
        self.run.start("worker")

    def storm(self, dice: random.Random) -> None:
        self.run.provider.latency = dice.choice([0.0, 0.02, 0.5])
        self.over.wait(5 + 5 * dice.random())


def used(pid: int) -> tuple[float, int]:
    """Megabytes of a process, and its descriptors."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def keep_on(soak: Soak, act: Callable[[random.Random], None], seed: str) -> threading.Thread:
    """Does the same until it is over; a connection that breaks is part of it."""

    def go() -> None:
        dice = random.Random(seed)
        while not soak.over.is_set():
            try:
                act(dice)
            except (OSError, HTTPException):
                continue

    thread = threading.Thread(target=go, name=seed, daemon=True)
    thread.start()
    return thread


def port_of(log: Path) -> int:
    until(lambda: '"listening"' in log.read_text(), told=log.read_text)
    return json.loads(next(line for line in log.read_text().splitlines() if '"listening"' in line))["port"]


@pytest.mark.chaos
def test_nothing_is_lost_and_nothing_grows(tmp_path: Path) -> None:
    provider = Provider()
    url = f"sqlite:///{tmp_path}/store.db"
    settings = {
        "CALLGRADE_JUDGE_MODEL": f"openai/{PRICED}",
        "CALLGRADE_BATCH_CHUNK": "100",
        "CALLGRADE_WORKER": "false",
    }
    with serving(provider), service(url, tmp_path, provider, **settings) as run:
        server = run.start("serve", "--port", "0", anew=True)
        soak = Soak(run, port_of(tmp_path / "worker-0.log"))
        until(lambda: soak.ask("GET", "/readyz")[0] == 200, patience=120)
        run.start("worker")
        acts = {"scores": soak.score, "more scores": soak.score, "batches": soak.submit, "leavers": soak.leave}
        acts |= {"kills": soak.kill, "storms": soak.storm}
        threads = [keep_on(soak, act, seed) for seed, act in acts.items()]
        time.sleep(SECONDS / 5)
        early = used(server.pid or 0)
        time.sleep(SECONDS * 4 / 5)
        late = used(server.pid or 0)
        soak.over.set()
        for thread in threads:
            thread.join(150)
        provider.latency = 0.0
        ended = [run.ended(batch, patience=600) for batch in soak.batches]
        print(f"{soak.scored} scores, {len(ended)} batches, {len(run.workers) - 2} kills; {early} -> {late}")
        assert soak.refused == []
        assert {batch.status for batch in ended} == {"completed"}
        assert all(numbers(run.results(batch)) == list(range(ITEMS)) for batch in soak.batches)
        assert late[0] <= early[0] * GROWTH + 20
        assert late[1] <= early[1] + 20
        days = json.loads(soak.ask("GET", "/v1/usage")[1])["data"]  # two, where it ran past midnight
        cost, uncertain = (sum(day[name] for day in days) for name in ("cost_usd", "uncertain_usd"))
        billed = sum(PRICE_IN * one.tokens_in + PRICE_OUT * one.tokens_out for one in provider.paid)
        print(f"{billed} USD billed, {cost} known, {uncertain} uncertain: {days}")
        assert cost <= billed * (1 + 1e-9)
        assert billed <= (cost + uncertain) * (1 + 1e-9)
