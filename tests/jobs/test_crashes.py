"""Workers that are killed: nothing is lost, nothing recorded twice, and no more paid again than was under way."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.provider import Provider, serving
from tests.jobs.process import numbers, request, service

IN_FLIGHT = 64


@pytest.mark.chaos
@pytest.mark.parametrize(("items", "kills"), [(10_000, 20), (500, 4)])
def test_a_killed_worker_loses_nothing(tmp_path: Path, items: int, kills: int) -> None:
    moments = sorted(random.Random(f"crashes {kills}").sample(range(items - 200), kills))
    provider = Provider(latency=0.05)
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        batch = run.submit([request(n) for n in range(items)])
        for moment in moments:
            worker = run.start()
            run.until(lambda moment=moment: len(provider.requests) >= moment)
            worker.kill()
            worker.wait()
        run.start()
        ended = run.ended(batch)
        assert ended.status == "completed", ended
        assert ended.request_counts.completed == items
        assert numbers(run.results(batch)) == list(range(items))
        again = sum(run.paid().values()) - items
        print(f"paid again: {again} in {kills} kills")
        assert set(run.paid()) == set(range(items))
        assert again <= kills * IN_FLIGHT
        run.until(run.is_idle)
        with run.database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
