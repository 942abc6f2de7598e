"""One worker process: how it starts, stops, and what it leaves in the tables."""

from __future__ import annotations

import base64
import json
import pickle
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.jobs.worker import LostWorkWatch
from service.store.tables import WORKERS
from tests.faults.provider import Provider, serving
from tests.jobs.process import numbers, request, service, with_signal

PICKLED = base64.b64encode(pickle.dumps(0)[:2]).decode()[:2]
"""How a pickle begins where it is kept as text."""


@pytest.fixture
def slow() -> Provider:
    return Provider(latency=0.1)


def test_a_worker_that_is_told_to_stop_pays_nothing_twice(tmp_path: Path, slow: Provider) -> None:
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        batch = run.submit([request(n) for n in range(120)])
        first = run.start("worker")
        run.until(lambda: len(slow.requests) >= 40)
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=25) == 0
        assert len(slow.requests) == len(run.results(batch))
        with run.database.read() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(WORKERS)).scalar() == 0
        run.start()
        assert run.ended(batch).request_counts.completed == 120
        assert set(run.paid().values()) == {1}
        assert numbers(run.results(batch)) == list(range(120))


def test_a_store_on_sqlite_has_one_worker(tmp_path: Path, slow: Provider) -> None:
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        run.start()
        run.until(lambda: '"working"' in run.log())
        second = run.start("worker")
        assert second.wait(timeout=60) == 4
        assert "has a worker already" in run.log()
        assert run.workers[0].poll() is None


def test_no_table_holds_what_would_run_when_it_is_read(tmp_path: Path, slow: Provider) -> None:
    slow.latency = 0.0
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        batch = run.submit([request(n) for n in range(30)], size=10)
        run.start()
        run.ended(batch)
        run.until(lambda: run.workflows().keys() == {"SUCCESS"})
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [cell for name in tables for row in store.execute(f"SELECT * FROM {name}") for cell in row]
        forms = {form for (form,) in store.execute("SELECT serialization FROM workflow_status")}
        inputs = [json.loads(text) for (text,) in store.execute("SELECT inputs FROM workflow_input")]
    assert forms == {"portable_json"}
    assert {len(one["positionalArgs"]) for one in inputs} == {1, 3}  # an end, and chunks
    assert not [cell for cell in cells if isinstance(cell, str) and cell.startswith(PICKLED)]
    assert not [cell for cell in cells if isinstance(cell, bytes) and cell.startswith(pickle.dumps(0)[:1])]


def test_a_long_batch_does_not_keep_a_short_one_waiting(tmp_path: Path, slow: Provider) -> None:
    slow.latency = 0.02
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        long = run.submit([request(n) for n in range(1_000)], size=50)
        short = run.submit([request(n) for n in range(1_000, 1_050)], size=50)
        run.start()
        run.ended(short)
        assert run.find(long).request_counts.completed < 500
        run.batches.cancel("", long)
        ended = run.ended(long)
        counts = ended.request_counts
        assert ended.status == "cancelled"
        assert counts.completed + counts.failed + counts.cancelled == counts.total == 1_000


def test_a_cancelled_batch_stops(tmp_path: Path, slow: Provider) -> None:
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        batch = run.submit([request(n) for n in range(800)])
        run.start()
        run.until(lambda: len(slow.requests) >= 200)
        run.batches.cancel("", batch)
        ended = run.ended(batch)
        assert ended.status == "cancelled"
        assert len(run.results(batch)) == len(slow.requests) < 700
        assert ended.request_counts.cancelled == 800 - len(run.results(batch))


@pytest.mark.chaos
def test_the_worker_of_a_server_that_was_killed_makes_room_for_the_next(tmp_path: Path, slow: Provider) -> None:
    slow.latency = 1.0  # the first one has something to finish, and keeps the store meanwhile
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        batch = run.submit([request(n) for n in range(100)])
        first = run.start(module="tests.jobs.parent")
        run.until(lambda: len(slow.requests) > 0)
        first.kill()
        first.wait()
        run.start(module="tests.jobs.parent")
        slow.latency = 0.0
        assert run.ended(batch).request_counts.completed == 100
        assert numbers(run.results(batch)) == list(range(100))


def test_a_workers_settings_at_fault_are_told(tmp_path: Path, slow: Provider) -> None:
    with service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        worker = run.start("worker", CALLGRADE_BATCH_IN_FLIGHT="many")
        assert worker.wait(timeout=60) == 4
        assert "CALLGRADE_BATCH_IN_FLIGHT: expected a whole number" in run.log()


def test_what_was_taken_and_not_begun_is_lost_when_it_was_seen_so_often_enough() -> None:
    lost = LostWorkWatch(looks=3)
    assert [lost.find_lost(idle) for idle in ({"a"}, {"a", "b"}, {"b"}, {"a", "b"}, {"a"}, {"a"}, {"a"})] == [
        [],
        [],
        [],
        ["b"],
        [],
        ["a"],
        [],
    ]


@pytest.mark.chaos
def test_work_that_the_engine_took_and_lost_is_put_back(tmp_path: Path) -> None:
    provider = Provider()
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        worker = run.start()
        run.until(lambda: '"working"' in run.log())
        with_signal(worker, signal.SIGSTOP)
        batch = run.submit([request(n) for n in range(40)], size=20)
        taken = "UPDATE workflow_status SET status = 'PENDING', executor_id = 'sqlite' WHERE workflow_uuid = ?"
        with run.database.begin() as connection:
            assert connection.exec_driver_sql(taken, (f"{batch}/1/0",)).rowcount == 1
        with_signal(worker, signal.SIGCONT)
        assert run.ended(batch).request_counts.completed == 40
        assert "putting back" in run.log()
        assert sum(run.paid().values()) == 40
