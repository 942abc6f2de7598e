"""(r): the memory of a worker over many items: it must not grow with them."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.batches import serve_store, sqlite
from tests.benchmarks.workload import add_results, cases, request

ITEMS, BATCH = 100_000, 10_000


def measure() -> None:
    """Prints a worker's resident memory after each batch of unjudged items."""
    requests = [request(add_results(case)) for case in cases()[1]]
    print(f"(r) resident memory of one worker on sqlite, {BATCH} unjudged items in each batch")
    seen: list[float] = []
    with sqlite() as (url, folder), serve_store(url, folder, "", CALLGRADE_JUDGE_MODEL="") as run:
        worker = run.start("worker", "--workers", "1", anew=True)
        for first in range(0, ITEMS, BATCH):
            chosen = [requests[n % len(requests)] for n in range(first, first + BATCH)]
            ended = run.ended(run.submit(chosen, size=250), patience=1_200)
            assert ended.request_counts.completed == BATCH, ended
            seen.append(read_memory(worker.pid))
            print(f"    after {first + BATCH:>9,} items                                      {seen[-1]:8.1f} MB")
    print(f"    last / second                                                     {seen[-1] / seen[1]:8.2f}")


def read_memory(pid: int) -> float:
    """MB of resident memory of a process; it needs Linux's /proc."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
