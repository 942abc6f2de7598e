"""What a machine does to a worker: its disk is full."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from service.errors import BusyError
from service.store.database import insist
from tests.faults.disk import fill, small
from tests.faults.provider import Provider, serving
from tests.jobs.process import request, service


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    provider, small_disk = Provider(), tmp_path / "disk"
    with small(small_disk), serving(provider), service(f"sqlite:///{small_disk}/store.db", tmp_path, provider) as run:
        batch = run.submit([request(n) for n in range(400)], size=50)
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file:
            fill(file)
            file.truncate(filler.stat().st_size - 300_000)
        run.start()
        run.until(lambda: "waiting for the database" in run.log())
        before = len(provider.requests)
        assert run.workers[0].poll() is None
        assert 0 < before < 400
        chance = Random(0)
        large = [
            request(n, tags={"noise": chance.randbytes(2_000).hex()}) for n in range(400)
        ]  # however much was freed
        with pytest.raises(BusyError):
            insist(lambda: run.submit(large), give_up=0.2)
        filler.unlink()
        ended = run.ended(batch)
        assert (ended.status, ended.request_counts.completed) == ("completed", 400)
        assert set(run.paid().values()) == {1}
        assert len(run.batches.page("", limit=10).data) == 1
