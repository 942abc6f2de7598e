"""An item that takes its worker down is given up after three times, and the batch goes on to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.store.jobs.backlog import read_backlog
from service.store.jobs.leases import QUARANTINE_DEATHS
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, numbers, request, service, until

MOST_DEATHS = QUARANTINE_DEATHS + 1
ITEMS, POISONED_ITEM, FIRST_ORDER = 30, 16, 50
"""The item is about order 66, which takes down who asks a judge about it."""


def deaths_until_the_end(run: Service, batch: str) -> int:
    """Starts workers until the batch has ended; how many of them died."""
    for count in range(MOST_DEATHS + 1):
        worker = run.start(odd="poisoned")
        until(lambda worker=worker: run.find(batch).ended or worker.poll() is not None, patience=120.0)
        if run.find(batch).ended:
            return count
        worker.wait()
    raise AssertionError(f"it goes on dying: {run.logs()[-3000:]}")


POISONS = [pytest.param({"tags": {"poison": "code"}}, ITEMS, marks=pytest.mark.chaos), ({}, 10)]


@pytest.mark.parametrize(("poison", "size"), POISONS)
def test_a_poison_item_is_given_up_and_the_others_are_scored(
    tmp_path: Path, poison: dict[str, object], size: int
) -> None:
    provider = Provider(latency=0.01)
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        requests = [request(FIRST_ORDER + n, **(poison if n == POISONED_ITEM else {})) for n in range(ITEMS)]
        batch = run.submit(requests, size=size)
        deaths = deaths_until_the_end(run, batch)
        ended = run.find(batch)
        assert deaths == QUARANTINE_DEATHS + 1  # at the first others ran beside it, at the second its chunk was alone
        counts = ended.request_counts
        assert (ended.status, counts.completed, counts.failed) == ("completed", ITEMS - 1, 1)
        rows = run.results(batch)
        assert numbers(rows) == list(range(ITEMS))
        (given_up,) = [json.loads(row.line) for row in rows if not row.ok]
        assert (given_up["custom_id"], given_up["index"]) == (f"item-{POISONED_ITEM}", POISONED_ITEM)
        assert given_up["error"]["title"] == "Quarantined"
        assert "took its worker down 3 times" in given_up["error"]["detail"]
        (told,) = [json.loads(line) for line in run.logs().splitlines() if "it is quarantined" in line]
        assert (told["level"].upper(), told["batch"], told["item"]) == ("ERROR", batch, POISONED_ITEM)
        assert read_backlog(run.database).quarantined == 1
