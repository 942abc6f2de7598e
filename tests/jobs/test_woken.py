"""A process that wakes up when its chunks are another's pays for nothing further: its places go to none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from service.asking.budget.reservations import Spending
from service.jobs.items import Deferral, WaitingItem
from service.jobs.runner import Runner
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import ChunkItem, ClaimedChunk, OutcomeRow
from service.store.jobs.submission import JobSubmission
from service.store.jobs.workers import Workers
from tests.jobs.process import chunks, request

PLACES = 2


class Slow:
    """Items whose judge answers when it is told to."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.full, self.answer = asyncio.Event(), asyncio.Event()

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        return [WaitingItem(item, f"{item.position}", None, None) for item in items]  # type: ignore[arg-type]

    async def finish(
        self, waiting: WaitingItem, tenant: str, batch_spending: Spending, *, last: bool
    ) -> OutcomeRow | Deferral:
        self.paid.append(waiting.item.position)
        if len(self.paid) == PLACES:
            self.full.set()
        await self.answer.wait()
        return OutcomeRow(waiting.item.position, ok=True, line="{}")


def test_places_of_a_lost_chunk_go_to_no_other_that_is_lost(database: Database) -> None:
    submission = JobSubmission(tenant="", fingerprint="", hours=1)
    requests = [request(n) for n in range(4 * PLACES)]
    Batches(database).submit(submission, chunks(requests, PLACES))
    Workers(database).beat("frozen")
    frozen = Chunks(database, "frozen")
    claimed = [one for one in iter(frozen.claim, None) if isinstance(one, ClaimedChunk)]

    async def main() -> list[int]:
        work = Slow()
        runner = Runner(frozen, work, in_flight=PLACES)
        running = [asyncio.create_task(runner.run(chunk)) for chunk in claimed]
        await work.full.wait()
        [record] = Workers(database).list_workers()
        assert Workers(database).reclaim(record) == len(claimed) == 4
        work.answer.set()
        await asyncio.gather(*running)
        runner.close()
        return work.paid

    assert len(asyncio.run(main())) == PLACES
    other = Chunks(database, "other")
    assert all(isinstance(other.claim(), ClaimedChunk) for _ in claimed)  # they are as free as they were
