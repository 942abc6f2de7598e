"""What a batch may spend, shared by its workers, and the recorder that writes outcomes and money together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from service.core.money import UsageAmount
from service.engine import Engine
from service.jobs.items import ItemScorer
from service.jobs.recorder import CALLS_AHEAD, BatchAccount, Recorder
from service.reading.strict_json import Limits
from service.registry import Registry
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ClaimedChunk, OutcomeRow, OutcomeRows
from service.store.tables import CHUNKS
from tests.store.test_store_chunks import Stage, row


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database)


def asked(number: int, held: int = 0) -> UsageAmount:
    return UsageAmount(questions=number, held_questions=held)


def test_workers_share_one_limit_of_questions(stage: Stage) -> None:
    batch = stage.submit(8, max_questions=20)
    one, other = stage.worker("one"), stage.worker("other")
    leases = [worker.claim().lease for worker in (one, other)]  # type: ignore[union-attr]
    assert [one.hold(batch, asked(0, 16)), other.hold(batch, asked(0, 16))] == [None, "max_questions"]
    assert other.hold(batch, asked(0, 4)) is None
    assert one.put_off(leases[0], used=asked(10), pause="paused_budget", reason="spent")
    assert stage.find(batch).status == "in_progress"  # the other one may give something back
    assert stage.find(batch).questions == 14
    assert other.hold(batch, asked(4, 7)) == "max_questions"
    assert other.put_off(leases[1], used=asked(4), pause="paused_budget", reason="spent")
    assert (stage.find(batch).status, stage.find(batch).questions) == ("paused_budget", 14)


def test_a_limit_that_was_raised_meanwhile_pauses_nothing(stage: Stage) -> None:
    batch = stage.submit(8, max_questions=20)
    one, other = stage.worker("one"), stage.worker("other")
    leases = [worker.claim().lease for worker in (one, other)]  # type: ignore[union-attr]
    assert one.hold(batch, asked(20)) is None
    assert [one.hold(batch, asked(20, 1)), other.hold(batch, asked(0, 1))] == ["max_questions"] * 2
    assert one.put_off(leases[0], pause="paused_budget", reason="spent")
    assert stage.find(batch).status == "paused_budget"
    stage.batches.resume("t", batch, max_questions=40)
    assert other.put_off(leases[1], pause="paused_budget", reason="spent")
    assert stage.find(batch).status == "in_progress"


def test_workers_share_one_budget(stage: Stage) -> None:
    batch = stage.submit(8, budget_usd=1.0)
    one, other = stage.worker("one"), stage.worker("other")
    assert one.claim()
    assert other.claim()
    assert one.hold(batch, UsageAmount(cost_usd=0.25, uncertain_usd=0.25, held_usd=0.25)) is None
    assert other.hold(batch, UsageAmount(held_usd=0.5)) == "budget_usd"
    assert other.hold(batch, UsageAmount(held_usd=0.25)) is None
    assert (stage.find(batch).cost_usd, stage.find(batch).uncertain_usd) == (0.25, 0.75)


def test_what_a_dead_worker_had_reserved_may_be_spent(stage: Stage) -> None:
    batch = stage.submit(8, max_questions=20)
    dead, other = stage.worker("dead"), stage.worker("other")
    assert dead.claim()
    assert dead.hold(batch, asked(4, 16)) is None
    stage.dies("dead")
    chunk = other.claim()
    assert isinstance(chunk, ClaimedChunk)
    assert other.hold(batch, asked(0, 1)) == "max_questions"
    assert other.put_off(chunk.lease, used=asked(0), pause="paused_budget", reason="spent")
    assert (stage.find(batch).status, stage.find(batch).questions) == ("paused_budget", 20)
    stage.batches.resume("t", batch, max_questions=30)
    assert other.hold(batch, asked(0, 10)) is None


def test_an_account_reserves_ahead_and_gives_back_what_it_does_not_need(stage: Stage) -> None:
    batch = stage.submit(4, max_questions=CALLS_AHEAD + 2)
    chunk = stage.claim()

    async def spend() -> list[int]:
        recorder = Recorder(stage.worker(), in_flight=4)
        account = await recorder.open_account(chunk)
        await account.wait_for_room(None)
        seen = [stage.find(batch).questions]
        with account.reserve(None):
            assert await recorder.put(chunk.lease, account, [row(0)])
            seen.append(stage.find(batch).questions)
        assert await recorder.put(chunk.lease, account, [row(1)])
        seen.append(stage.find(batch).questions)
        await recorder.close_account(account)
        return seen

    assert asyncio.run(spend()) == [CALLS_AHEAD, CALLS_AHEAD, 1]
    assert stage.worker().read_used(batch) == replace(asked(1), unpriced=1)


# The recorder.


def test_a_damaged_payload_is_told_item_by_item(stage: Stage) -> None:
    stage.submit(3)
    with stage.database.begin() as connection:
        connection.execute(CHUNKS.update().values(payload=b"x"))
    opened = stage.claim()
    assert [(item.position, item.line) for item in opened.items] == [(0, b""), (1, b""), (2, b"")]
    rows = ItemScorer(Engine(Registry()), Limits()).begin(opened.items)
    assert [one.ok for one in rows if isinstance(one, OutcomeRow)] == [False, False, False]


def test_an_outcome_that_the_database_does_not_take_spoils_no_other(stage: Stage) -> None:
    one, other = stage.submit(2), stage.submit(2)
    claimed = [stage.claim(), stage.claim()]

    async def record() -> list[bool]:
        recorder = Recorder(stage.worker(), in_flight=64)
        accounts = [await recorder.open_account(chunk) for chunk in claimed]
        bad = replace_line(row(1))
        puts = [
            recorder.put(claimed[0].lease, accounts[0], [row(0), bad]),
            recorder.put(claimed[1].lease, accounts[1], [row(0)]),
        ]
        return list(await asyncio.gather(*puts))

    assert asyncio.run(record()) == [True, True]
    assert stage.lines(other) == ["first 0"]
    good, told = stage.lines(one)
    assert (good, json.loads(told)["error"]["status"]) == ("first 0", 500)


def replace_line(one: OutcomeRow) -> OutcomeRow:
    """One whose text no database takes."""
    return one._replace(line="\ud800")


class Counting(Chunks):
    """Chunks that count the rows of each commit."""

    def __init__(self, database: Database, owner: str) -> None:
        super().__init__(database, owner)
        self.commits: list[int] = []

    def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
        found = list(groups)
        self.commits.append(sum(len(group.rows) for group in found))
        return super().record(found)


def test_outcomes_that_come_one_by_one_share_commits(stage: Stage) -> None:
    batch = stage.submit(20, size=20)
    chunk, counting = stage.claim(), Counting(stage.database, "w")

    async def record() -> list[bool]:
        recorder = Recorder(counting, in_flight=64)
        account = await recorder.open_account(chunk)
        puts: list[asyncio.Task[bool]] = []
        for n in range(20):
            puts.append(asyncio.create_task(recorder.put(chunk.lease, account, [row(n)])))
            if n == 0:
                await puts[0]  # it goes alone: nobody waits for company that may not come
            await asyncio.sleep(0)
        return await asyncio.gather(*puts)

    assert all(asyncio.run(record()))
    assert sum(counting.commits) == len(stage.lines(batch)) == 20
    assert counting.commits[0] == 1
    assert len(counting.commits) < 10


def test_where_all_places_are_taken_nothing_is_waited_for(stage: Stage) -> None:
    batch = stage.submit(20, size=20)
    chunk = stage.claim()

    async def record(places: int, numbers: Iterable[int]) -> None:
        recorder = Recorder(stage.worker(), in_flight=places, interval_s=3_600.0)
        account: BatchAccount = await recorder.open_account(chunk)
        for n in numbers:
            await asyncio.gather(*[recorder.put(chunk.lease, account, [row(places * n + k)]) for k in range(places)])

    asyncio.run(asyncio.wait_for(record(1, range(4)), 60))
    asyncio.run(asyncio.wait_for(record(4, range(1, 5)), 60))
    assert len(stage.lines(batch)) == 20
