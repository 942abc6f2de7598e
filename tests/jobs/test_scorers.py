"""Processes beside a worker that score: on every core, and with the same results."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.cli.serving.worker import count_cores
from service.store.tables import CHUNKS
from tests.faults.provider import Provider
from tests.jobs.process import request, service, until


def score(folder: Path, *options: str) -> tuple[list[int], list[tuple[int, bool, str]]]:
    """The rows of a batch of 300 items, and the processes that the worker had beside it."""
    folder.mkdir()
    with service(f"sqlite:///{folder}/store.db", folder, Provider(), CALLGRADE_JUDGE_MODEL="") as run:
        worker = run.start("worker", *options)
        batch = run.submit([request(n) if n % 7 else {"trace": n} for n in range(300)], size=100)
        assert run.ended(batch).request_counts.total == 300
        rows = [(row.position, row.ok, row.line) for row in run.results(batch)]
        beside = find_children(worker.pid)
        worker.send_signal(signal.SIGKILL)
        until(lambda: not any(map(runs, beside)), patience=60.0)
        return beside, rows


def runs(pid: int) -> bool:
    """Whether a process does; one that has ended stays in the list until whoever inherits it has looked."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def find_children(pid: int) -> list[int]:
    """The processes that a process has started."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


def test_several_cores_give_what_one_gives_and_end_with_their_worker(tmp_path: Path) -> None:
    alone, expected = score(tmp_path / "one", "--workers", "1")
    beside, rows = score(tmp_path / "two", "--workers", "2")
    assert rows == expected
    assert len(rows) == 300
    assert (len(alone), len(beside)) == (0, 2)


def test_all_of_them_told_to_stop_leave_the_rest_to_the_next_and_nobody_is_suspected(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path}/store.db", tmp_path, Provider(), CALLGRADE_JUDGE_MODEL="") as run:
        worker = run.start("worker", "--workers", "2")
        batch = run.submit([request(n) for n in range(3_000)], size=250)
        run.until(lambda: run.find(batch).request_counts.completed > 500)
        for one in [*find_children(worker.pid), worker.pid]:
            os.kill(one, signal.SIGTERM)
        assert worker.wait(timeout=60) == 0
        run.start("worker", "--workers", "1")
        assert run.ended(batch).request_counts.completed == 3_000
        with run.database.read() as connection:
            assert connection.execute(sa.select(sa.func.sum(CHUNKS.c.deaths))).scalar() == 0


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", None), ("100000 100000", 1), ("50000 100000", 1), ("what", None), (None, None)],
    ids=["no limit", "one core", "half a core", "no quota", "no file"],
)
def test_a_container_has_the_cores_that_it_is_given(tmp_path: Path, quota: str | None, cores: int | None) -> None:
    file = tmp_path / "cpu.max"
    if quota is not None:
        file.write_text(quota)
    assert count_cores(file) == (cores or len(os.sched_getaffinity(0)))
