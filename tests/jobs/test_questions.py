"""A limit of questions holds for a batch, however many workers there are and whichever of them is killed."""

from __future__ import annotations

from pathlib import Path

from service.jobs.recorder import CALLS_AHEAD, QUESTIONS_SPENT
from service.store.jobs.jobs import Batch
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, numbers, request, service

ITEMS, LIMIT = 100, 60


def paused(run: Service, batch: str) -> Batch:
    run.until(lambda: run.find(batch).status == "paused_budget")
    return run.find(batch)


def test_no_more_is_asked_than_may_be(tmp_path: Path, store_url: str) -> None:
    """One worker is killed meanwhile: what it may have asked counts as asked, and is no more than was written down ahead."""
    provider = Provider(latency=0.05)
    with serving(provider), service(store_url, tmp_path, provider, CALLGRADE_BATCH_IN_FLIGHT="8", SILENT="4") as run:
        workers = [run.start() for _ in range(1 if run.database.is_sqlite else 3)]
        run.until(lambda: run.logs().count('"working"') == len(workers))
        batch = run.submit([request(n) for n in range(ITEMS)], size=20, max_questions=LIMIT)
        run.until(lambda: len(provider.requests) >= LIMIT // 3)
        workers[0].kill()
        workers[0].wait()
        run.start()
        found = paused(run, batch)
        assert (found.questions, found.reason) == (LIMIT, QUESTIONS_SPENT)
        assert LIMIT - CALLS_AHEAD <= len(provider.requests) <= LIMIT
        run.batches.resume("", batch, max_questions=2 * ITEMS)
        ended = run.ended(batch)
        assert (ended.status, ended.request_counts.completed) == ("completed", ITEMS)
        assert numbers(run.results(batch)) == list(range(ITEMS))
        assert len(provider.requests) <= ended.questions <= len(provider.requests) + CALLS_AHEAD
