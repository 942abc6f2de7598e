"""(p): a batch of 100,000 items without judges on every core: processor time and memory, tenth by tenth."""

from __future__ import annotations

import time
from pathlib import Path

from tests.benchmarks.batches import postgres, serve_store, sqlite
from tests.jobs.process import request

TICKS = 100
"""Of a second, in which Linux counts processor time."""


def measure(items: int = 100_000) -> None:
    """Prints both databases."""
    for store in (sqlite, postgres):
        with store() as (url, folder), serve_store(url, folder, "", CALLGRADE_JUDGE_MODEL="") as run:
            worker = run.start("worker", anew=True)
            run.ended(run.submit([request(10**6 + n) for n in range(2_000)]))  # every process is there, and warm
            processes = find_processes(worker.pid)
            batch = run.submit([request(n) for n in range(items)], size=250)
            start, used, tenths = time.perf_counter(), sum(map(count_cpu, processes)), list[tuple[float, int]]()
            while not (found := run.find(batch)).ended or len(tenths) < 10:
                if found.request_counts.completed >= (len(tenths) + 1) * items / 10:
                    now = sum(map(count_cpu, processes))
                    tenths.append((1e6 * (now - used) / (items / 10), sum(map(count_memory, processes))))
                    used = now
                time.sleep(0.1)
        print(f"(p) a batch of {items} items on {store.__name__}, {items / (time.perf_counter() - start):.0f} items/s")
        print("    CPU of an item, us, by tenths     ", *[f"{cpu:.0f}" for cpu, _ in tenths])
        print("    memory of all processes, MB       ", *[str(memory) for _, memory in tenths])
        print(f"    last tenth / first                 {tenths[-1][0] / tenths[0][0]:.2f}")


def find_processes(pid: int) -> list[int]:
    """A process, and those that it has started."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *[one for file in files for child in file.read_text().split() for one in find_processes(int(child))]]


def count_cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def count_memory(pid: int) -> int:
    """Memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))
