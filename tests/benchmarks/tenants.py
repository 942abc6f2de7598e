"""(p), (q): what a small score and a batch of one tenant take beside another who sends all that is hard, and what alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.api.test_fairness import ITEM, Tenants, giant, tenants
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, request, service, until

ROUNDS = 3
SCORES = 40
"""Small scores of one round."""
ITEMS = 400
"""Judged items of the batch that is timed; those of the other tenant are five times as many in each of three."""
GIANTS = 8
STREAMS = 60
SLOW = 60


def measure() -> None:
    """Prints both times and their ratio, of rounds that take turns."""
    with TemporaryDirectory() as home, tenants(Path(home)) as two:
        two.score("good")
        rounds = [(_times(two), _beside(two)) for _ in range(ROUNDS)]
    quiet, loaded = ([one for pair in rounds for one in pair[side]] for side in (0, 1))
    print("(p) a small score of one tenant, beside giants, streams and slow bodies of another")
    print(f"    quiet, median and 95th percentile                 {_told(quiet)}")
    print(f"    beside the other                                  {_told(loaded)}")
    print(f"    ratio of the medians (aim at most 3)              {median(loaded) / median(quiet):8.2f}")
    print(f"    ratio of the 95th percentiles                     {_p95(loaded) / _p95(quiet):8.2f}")


def measure_batches() -> None:
    """Prints how long a judged batch takes alone, and while another tenant's longer batches wait and run beside it."""
    provider = Provider(latency=0.05)
    with (
        TemporaryDirectory() as home,
        serving(provider),
        service(f"sqlite:///{home}/store.db", Path(home), provider) as run,
    ):
        run.start()
        numbers = count(0, ITEMS)
        _time_batch(run, next(numbers))
        rounds = [(_time_batch(run, next(numbers)), _time_beside(run, numbers)) for _ in range(ROUNDS)]
    quiet, loaded = ([pair[side] for pair in rounds] for side in (0, 1))
    print("(q) a judged batch of one tenant, beside three of another, five times as long")
    print(f"    quiet {median(quiet):.2f} s, beside the other {median(loaded):.2f} s")
    print(f"    ratio of the medians (aim at most 2)              {median(loaded) / median(quiet):8.2f}")


def _time_batch(run: Service, first: int) -> float:
    start = time.perf_counter()
    batch = run.submit([request(first + n) for n in range(ITEMS)], size=50, tenant="good")
    until(lambda: run.batches.find("good", batch).ended, patience=600)
    return time.perf_counter() - start


def _time_beside(run: Service, numbers: Iterator[int]) -> float:
    before = len(run.provider.requests)
    firsts = [next(numbers) for _ in range(15)]
    others = [
        run.submit([request(first + n) for first in part for n in range(ITEMS)], size=50, tenant="hostile")
        for part in (firsts[:5], firsts[5:10], firsts[10:])
    ]
    until(lambda: len(run.provider.requests) > before + 100)
    taken = _time_batch(run, next(numbers))
    for other in others:
        run.batches.cancel("hostile", other)
    until(lambda: all(run.batches.find("hostile", other).ended for other in others), patience=600)
    return taken


def _told(times: list[float]) -> str:
    return f"{median(times) * 1e3:8.1f} ms {_p95(times) * 1e3:8.1f} ms"


def _p95(times: list[float]) -> float:
    return sorted(times)[len(times) * 95 // 100]


def _times(two: Tenants) -> list[float]:
    found: list[float] = []
    for _ in range(SCORES):
        start = time.perf_counter()
        if two.score("good") != 200:
            raise RuntimeError("a score of the good tenant was refused")
        found.append(time.perf_counter() - start)
        time.sleep(0.01)
    return found


def _beside(two: Tenants) -> list[float]:
    with _hostile(two):
        time.sleep(0.5)
        return _times(two)


@contextmanager
def _hostile(two: Tenants) -> Iterator[None]:
    """All at once, for as long as the block lasts."""
    batch = two.ask("hostile", "POST", "/v1/batches", ITEM)[1].split(b'"id":"')[1].split(b'"')[0].decode()
    held = [two.begin("hostile", "GET", f"/v1/batches/{batch}/events") for _ in range(STREAMS)]
    held += [two.begin("hostile", "POST", "/v1/score", 1_000, b"{") for _ in range(SLOW)]

    with subprocess.Popen([sys.executable, "-m", __name__, str(two.server.port), two.keys["hostile"]]) as senders:
        try:
            yield
        finally:
            senders.terminate()
            for one in held:
                one.close()


def _send_giants(port: int, key: str) -> None:
    """Sends scores of giants without end. Those who send are elsewhere: they take no processor that the service wants."""
    os.nice(19)
    data, headers = giant(), {"authorization": f"Bearer {key}", "content-type": "application/json"}

    def send() -> None:
        while True:
            with suppress(OSError, HTTPException), closing(HTTPConnection("127.0.0.1", port)) as connection:
                connection.request("POST", "/v1/score", data, headers)
                connection.getresponse().read()

    threads = [threading.Thread(target=send) for _ in range(GIANTS)]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    _send_giants(int(sys.argv[1]), sys.argv[2])
