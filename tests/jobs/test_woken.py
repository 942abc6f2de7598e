"""A process that wakes up when its chunks are another's pays for nothing further: its places go to none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from service.asking.budget.reservations import Spending
from service.jobs.items import Deferral, WaitingItem
from service.jobs.runner import Runner
from service.store.database import Database
from service.store.jobs.batches import Batches
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ChunkId, ChunkItem, OutcomeRow
from service.store.jobs.submission import JobSubmission
from tests.jobs.process import chunks, request
from tests.store.played import Recording

PLACES = 2


class Slow:
    """Items whose judge answers when it is told to."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.full, self.answer = asyncio.Event(), asyncio.Event()

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        return [WaitingItem(item, f"{item.position}", None, None) for item in items]  # type: ignore[arg-type]

    async def finish(
        self, waiting: WaitingItem, tenant: str, chunk_spending: Spending, *, last: bool
    ) -> OutcomeRow | Deferral:
        self.paid.append(waiting.item.position)
        if len(self.paid) == PLACES:
            self.full.set()
        await self.answer.wait()
        return OutcomeRow(waiting.item.position, ok=True, line="{}")


async def owned() -> bool:
    return True


def test_places_of_a_lost_chunk_go_to_no_other_that_is_lost(database: Database) -> None:
    submission = JobSubmission(tenant="", fingerprint="", hours=1)
    requests = [request(n) for n in range(4 * PLACES)]
    batch = Batches(database, Recording()).submit(submission, chunks(requests, PLACES)).id
    ids = [ChunkId(batch, number) for number in range(4)]

    async def main() -> tuple[list[int], list[str]]:
        work, kept = Slow(), Chunks(database, Recording())
        runner = Runner(kept, work, in_flight=PLACES)
        running = [asyncio.create_task(runner.run(chunk, 0, owned)) for chunk in ids]
        await work.full.wait()
        while not all([await asyncio.to_thread(kept.count_attempts, chunk) for chunk in ids]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for chunk in ids:  # frozen meanwhile, it was taken for dead
            assert await asyncio.to_thread(kept.lease, chunk, 0)
        work.answer.set()
        ended = list(await asyncio.gather(*running))
        runner.close()
        return work.paid, ended

    paid, ended = asyncio.run(main())
    assert (len(paid), ended) == (PLACES, ["refused"] * 4)
