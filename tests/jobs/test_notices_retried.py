"""Notices that are not taken: how often another one is sent, after how long, and what the batch says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa

from service.errors import BusyError, CallgradeError, InputError, WebhookError
from service.jobs.runner import Runner
from service.jobs.worker import Worker
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.duties import Duty, claim_duty
from service.store.jobs.jobs import Batches
from service.store.jobs.submission import Chunk, JobSubmission
from service.store.tables import CHUNKS
from tests.store.played import ended, recorded

BUSY = WebhookError("the receiver answered 503", retryable=True)
FINAL = WebhookError("the receiver answered 404", retryable=False)
DELAYS = [5.0, 20.0, 80.0, 320.0, 1_280.0, 5_120.0, 20_480.0]


class Script:
    """A notifier that does as it is told, once for each notice."""

    def __init__(self, outcomes: Sequence[CallgradeError | None]) -> None:
        self._outcomes: Iterator[CallgradeError | None] = iter(outcomes)
        self.told: list[str] = []

    async def notify(self, batch: str) -> None:
        self.told.append(batch)
        outcome = next(self._outcomes)
        if outcome is not None:
            raise outcome


class Idle(Runner):
    """No notice needs what works on chunks."""

    def __init__(self) -> None:
        pass


def over(database: Database) -> str:
    given = JobSubmission(tenant="t", fingerprint="f", hours=1.0, webhook="https://receiver/")
    batch = Batches(database).submit(given, [Chunk(0, 1, b"")]).id
    recorded(database, batch, [0])
    ended(database, batch)
    return batch


def wait_for(database: Database, batch: str) -> float | None:
    """The seconds until the notice is due; None where there is none."""
    with database.read() as connection:
        chosen = sa.select(CHUNKS.c.due_at - database.now()).where(CHUNKS.c.batch == batch, CHUNKS.c.kind == "notice")
        return connection.execute(chosen).scalar_one_or_none()


def due(database: Database, batch: str) -> Duty:
    with database.begin() as connection:
        connection.execute(CHUNKS.update().where(CHUNKS.c.batch == batch).values(due_at=0.0))
    duty = claim_duty(database, "w", ["notice"])
    assert duty is not None
    return duty


def status(database: Database, batch: str) -> str | None:
    webhook = Batches(database).find("t", batch).webhook
    assert webhook
    return webhook.status


CASES: list[tuple[str, list[CallgradeError | None], list[float], str]] = [
    ("taken at once", [None], [], "delivered"),
    ("taken later", [BUSY, BUSY, None], DELAYS[:2], "delivered"),
    ("taken at last", [*[BUSY] * 7, None], DELAYS, "delivered"),
    ("never taken", [BUSY] * 8, DELAYS, "failed"),
    ("refused for good", [FINAL], [], "failed"),
    ("refused for good later", [BUSY, FINAL], DELAYS[:1], "failed"),
    ("another error that may pass", [BusyError("no room"), None], DELAYS[:1], "delivered"),
    ("another error that stays", [InputError.at("", "wrong")], [], "failed"),
]


@pytest.mark.parametrize(("outcomes", "delays", "last"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_notice_is_sent_again_later_each_time(
    database: Database, outcomes: list[CallgradeError | None], delays: list[float], last: str
) -> None:
    notifier = Script(outcomes)
    batch = over(database)
    worker = Worker(Chunks(database, "w"), Idle(), notifier.notify)
    for number in range(len(outcomes)):
        assert status(database, batch) == "pending"
        asyncio.run(worker.fulfil(due(database, batch)))
        left = wait_for(database, batch)
        if number < len(delays):
            assert left is not None
            assert delays[number] - 5.0 < left <= delays[number] + 0.001
        else:
            assert left is None
    assert status(database, batch) == last
    assert notifier.told == [batch] * len(outcomes)


def test_of_a_batch_that_is_gone_nothing_is_kept(database: Database) -> None:
    batch = over(database)
    duty = due(database, batch)
    Batches(database).delete("t", batch)
    asyncio.run(Worker(Chunks(database, "w"), Idle(), Script([FINAL]).notify).fulfil(duty))
    assert wait_for(database, batch) is None
