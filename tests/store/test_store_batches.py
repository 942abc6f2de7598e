"""Batches in the database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, get_args

import pytest
import sqlalchemy as sa

from service.errors import InputError, JobStateError, QueueFullError, UnknownJobError
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batch, Batches, Room, count_queued
from service.store.jobs.leases import ClaimedChunk, OutcomeRow, OutcomeRows, Pause
from service.store.jobs.results import find_window, read_error_pages, read_result_pages
from service.store.jobs.submission import Chunk, JobSubmission
from service.store.tables import BATCHES, CHUNKS, SUBMISSIONS
from tests.store.played import closed, ended, ends, opened, overdue, paused, ready, recorded, rows_of


def submission(**more: Any) -> JobSubmission:
    return JobSubmission(**{"tenant": "t", "fingerprint": "f", "hours": 24.0, **more})


def chunks(*sizes: int) -> Iterator[Chunk]:
    first = 0
    for size in sizes:
        lines = [json.dumps({"custom_id": f"c{n}", "request": {}}).encode() for n in range(first, first + size)]
        yield Chunk(first, size, zlib.compress(b"\n".join(lines)))
        first += size


@pytest.fixture
def batches(database: Database) -> Batches:
    return Batches(database)


def test_nothing_stays_of_a_submission_that_fails_half_way(batches: Batches, database: Database) -> None:
    def broken() -> Iterator[Chunk]:
        yield from chunks(1)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        batches.submit(submission(key="k"), broken())
    with database.read() as connection:
        for table in (BATCHES, CHUNKS, SUBMISSIONS):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == 0


# Keys.


def test_of_many_submissions_at_once_with_one_key_one_makes_a_batch(batches: Batches) -> None:
    with ThreadPoolExecutor(10) as threads:
        made = list(threads.map(lambda _: batches.submit(submission(key="k"), chunks(1, 1)), range(40)))
    assert len({batch.id for batch in made}) == 1
    assert len(batches.page("t", limit=10).data) == 1


# Looking up.


def test_batches_are_listed_newest_first_in_pages(batches: Batches, database: Database) -> None:
    made = [batches.submit(submission(), chunks(1)).id for _ in range(5)][::-1]
    made.sort(reverse=True)  # of the same millisecond any may come first
    batches.submit(submission(tenant="u"), chunks(1))
    first = batches.page("t", limit=2)
    assert ([batch.id for batch in first.data], first.has_more, first.next) == (made[:2], True, made[1])
    rest = batches.page("t", limit=3, after=first.next)
    assert ([batch.id for batch in rest.data], rest.has_more, rest.next) == (made[2:], False, None)
    batches.cancel("t", made[3])
    ended(database, made[3])
    assert [batch.id for batch in batches.page("t", limit=9, status="cancelled").data] == [made[3]]
    batches.delete("t", made[3])
    assert [batch.id for batch in batches.page("t", limit=9, after=made[3]).data] == [made[4]]
    with pytest.raises(InputError, match="after"):
        batches.page("t", limit=9, after="batch_1")


# Room.


def queued(database: Database, tenant: str | None = None) -> int:
    with database.read() as connection:
        return count_queued(connection, tenant)


def test_what_finds_no_room_is_refused_and_leaves_nothing(database: Database) -> None:
    batches = Batches(database, Room(max_items=6, max_tenant_items=4))
    batch = batches.submit(submission(), chunks(2, 2))
    assert [queued(database, tenant) for tenant in (None, "t", "u")] == [4, 4, 0]
    with pytest.raises(QueueFullError, match="5 items would wait of yours"):
        batches.submit(submission(key="k"), chunks(1))
    with pytest.raises(QueueFullError, match="7 items would wait in all"):
        batches.submit(submission(tenant="u"), chunks(3))
    with pytest.raises(QueueFullError):
        batches.check_room("t")
    batches.check_room("u")
    assert len(batches.page("t", limit=9).data) == 1
    recorded(database, batch.id, [0, 1, 3])
    assert queued(database) == 1
    batches.submit(submission(key="k"), chunks(3))
    batches.cancel("t", batch.id)
    closed(database, batch.id)
    assert queued(database) == 3


# Cancelling.


@pytest.mark.parametrize("under_way", [0, 1, 3])
def test_cancelling_leaves_what_is_under_way_and_closes_the_rest(
    batches: Batches, database: Database, under_way: int
) -> None:
    batch = batches.submit(submission(), chunks(2, 2, 2)).id
    opened(database, batch, *range(under_way))
    recorded(database, batch, [0, 1] if under_way > 1 else [])
    found = batches.cancel("t", batch)
    still = under_way - (under_way > 1)
    assert found.status == ("cancelling" if still else "finalizing")
    assert ends(database, batch) == ([] if still else [batch])
    assert batches.cancel("t", batch) == found
    if still:
        closed(database, batch)
    ended(database, batch)
    done = batches.cancel("t", batch)
    counts = done.request_counts
    assert (done.status, counts.completed, counts.cancelled) == ("cancelled", *((2, 4) if under_way > 1 else (0, 6)))
    assert done.ended_at is not None


# Going on.


@pytest.mark.parametrize("status", sorted(get_args(Pause)))
def test_a_paused_batch_goes_on(batches: Batches, database: Database, status: Pause) -> None:
    batch = batches.submit(submission(budget_usd=1.0), chunks(1, 1, 1)).id
    recorded(database, batch, [0])
    paused(database, batch, status)
    assert batches.find("t", batch).reason == "because"
    assert ready(database, batch) == [2]
    found = batches.resume("t", batch, budget_usd=2.0)
    assert (found.status, found.reason, found.resume_at, found.budget_usd) == ("in_progress", None, None, 2.0)
    assert ready(database, batch) == [1, 2]


def test_a_batch_is_paused_by_its_submitter_and_nobody_claims_of_it(batches: Batches, database: Database) -> None:
    batch, worker = batches.submit(submission(), chunks(2, 2)).id, Chunks(database, "w")
    under_way = worker.claim()
    assert isinstance(under_way, ClaimedChunk)
    assert [batches.pause("t", batch).status for _ in range(2)] == ["paused", "paused"]
    assert worker.claim() is None
    assert worker.find_stopped([batch]) == {batch}
    assert worker.put_off(under_way.lease, pause="paused_provider", delay=9.0)
    assert batches.find("t", batch).status == "paused"
    assert batches.resume("t", batch).status == "in_progress"
    assert ready(database, batch) == [0, 2]
    paused(database, batch, "paused_budget")
    assert batches.pause("t", batch).status == "paused_budget"
    batches.cancel("t", batch)
    with pytest.raises(JobStateError, match="finalizing"):
        batches.pause("t", batch)


def test_failed_items_are_tried_again_and_the_others_stay(batches: Batches, database: Database) -> None:
    batch = batches.submit(submission(webhook="https://e/"), chunks(2, 2, 2)).id
    recorded(database, batch, [0, 1, 3, 4])
    recorded(database, batch, [2, 5], ok=False)
    with pytest.raises(JobStateError, match="finalizing"):
        batches.retry("t", batch)
    ended(database, batch)
    assert len(rows_of(database, batch, "notice")) == 1
    with database.begin() as connection:  # one that took down its workers is not among them
        connection.execute(CHUNKS.update().where(CHUNKS.c.first == 4).values(deaths=3))
    found = batches.retry("t", batch)
    counts = found.request_counts
    assert (found.status, counts.completed, counts.failed, found.ended_at) == ("in_progress", 4, 1, None)
    assert (ready(database, batch), rows_of(database, batch, "notice")) == ([2], [])
    claimed = Chunks(database, "w").claim()
    assert isinstance(claimed, ClaimedChunk)
    assert [item.position for item in claimed.items] == [2]
    again = OutcomeRows(claimed.lease, [OutcomeRow(2, True, "{}")])
    assert Chunks(database, "w").record([again]) == [True]
    ended(database, batch)
    assert batches.find("t", batch).request_counts.completed == 5
    with pytest.raises(JobStateError, match="no item failed that can be tried again"):
        batches.retry("t", batch)


def test_what_cannot_go_on_stays_as_it_is(batches: Batches, database: Database) -> None:
    free = batches.submit(submission(), chunks(1)).id
    with pytest.raises(JobStateError, match="in_progress"):
        batches.resume("t", free)
    paused(database, free, "paused_provider")
    with pytest.raises(InputError, match="without a budget"):
        batches.resume("t", free, budget_usd=1.0)
    with pytest.raises(InputError, match="without a limit of questions"):
        batches.resume("t", free, max_questions=1)
    capped = batches.submit(submission(budget_usd=1.0, max_questions=7), chunks(2)).id
    recorded(database, capped, [0])
    paused(database, capped, "paused_budget")
    with pytest.raises(InputError, match=r"more than the \$0\.250000"):
        batches.resume("t", capped, budget_usd=0.25)
    with pytest.raises(InputError, match="more than the 0 already asked"):
        batches.resume("t", capped, max_questions=0)
    spent = batches.submit(submission(budget_usd=0.25), chunks(2)).id
    recorded(database, spent, [0])
    paused(database, spent, "paused_budget")
    with pytest.raises(InputError, match=r"more than the \$0\.250000"):
        batches.resume("t", spent)
    with pytest.raises(InputError, match="expected a higher limit"):
        batches.resume("t", capped)
    with pytest.raises(InputError, match="expected a higher limit"):
        batches.resume("t", capped, budget_usd=0.9, max_questions=7)
    assert {batches.find("t", one).status for one in (free, capped, spent)} == {"paused_provider", "paused_budget"}


# The end.


def test_batches_end_at_their_deadline(batches: Batches, database: Database) -> None:
    idle, busy, waits, early = [batches.submit(submission(), chunks(2, 2)).id for _ in range(4)]
    opened(database, busy, 0)
    paused(database, waits, "paused_provider")
    for late in (idle, busy, waits):
        overdue(database, late)
    assert set(batches.expire_due()) == {idle, busy, waits}
    assert batches.expire_due() == []
    assert ends(database, idle, busy, waits) == [idle, waits]
    assert [batches.find("t", one).status for one in (idle, busy, waits, early)] == ["finalizing"] * 3 + ["in_progress"]
    closed(database, busy)
    ended(database, busy)
    found = batches.find("t", busy)
    assert (found.status, found.request_counts.expired) == ("expired", 4)


def test_what_ended_long_ago_is_forgotten_and_its_key_is_free_again(batches: Batches, database: Database) -> None:
    old, fresh, running = [batches.submit(submission(key=key), chunks(1)).id for key in ("old", "fresh", "running")]
    for batch, days in ((old, 31.0), (fresh, 29.0)):
        recorded(database, batch, [0])
        ended(database, batch, days_ago=days)
    with database.begin() as connection:
        connection.execute(SUBMISSIONS.update().values(created_at=database.now() - 31 * 86_400.0))
    assert batches.forget_old(days=30) == 1
    assert {batch.id for batch in batches.page("t", limit=9).data} == {fresh, running}
    assert batches.submit(submission(key="old"), chunks(1)).id != old
    assert batches.submit(submission(key="running"), chunks(1)).id == running


# Results.


def told(database: Database, batch: Batch, **bounds: int) -> tuple[list[int], list[int], int, bool]:
    """The positions with results and with errors, the next offset, and whether that is all."""
    found = find_window(database, batch, **bounds)
    results, errors = (
        [json.loads(line)["index"] for page in pages(database, batch, found) for line in page.splitlines()]
        for pages in (read_result_pages, read_error_pages)
    )
    return results, errors, found.end, found.complete


def test_results_come_in_order_as_far_as_all_before_them_are_there(batches: Batches, database: Database) -> None:
    batch = batches.submit(submission(), chunks(3, 3, 3)).id

    def now(**bounds: int) -> tuple[list[int], list[int], int, bool]:
        return told(database, batches.find("t", batch), **bounds)

    assert now() == ([], [], 0, False)
    recorded(database, batch, [4, 5, 8, 1])
    assert now() == ([], [], 0, False)
    recorded(database, batch, [0], ok=False)
    assert now() == ([1], [0], 2, False)
    recorded(database, batch, [2])
    assert now() == ([1, 2], [0], 3, False)
    recorded(database, batch, [3, 6])
    assert now() == ([1, 2, 3, 4, 5, 6], [0], 7, False)
    assert now(offset=2, limit=2) == ([2, 3], [], 4, False)
    assert now(offset=7) == ([], [], 7, False)
    assert now(offset=20) == ([], [], 20, False)
    recorded(database, batch, [7], ok=False)
    assert now() == ([1, 2, 3, 4, 5, 6, 8], [0, 7], 9, False)
    ended(database, batch)
    assert now() == ([1, 2, 3, 4, 5, 6, 8], [0, 7], 9, True)
    assert now(limit=8) == ([1, 2, 3, 4, 5, 6], [0, 7], 8, False)
    assert now(offset=8, limit=9) == ([8], [], 9, True)


@pytest.mark.parametrize("ending", ["cancelled", "expired"])
def test_every_item_of_a_batch_that_was_stopped_is_in_one_of_the_two(
    batches: Batches, database: Database, ending: str
) -> None:
    batch = batches.submit(submission(), chunks(3, 3, 3, 2)).id
    recorded(database, batch, [3, 4, 5, 1])
    recorded(database, batch, [7], ok=False)
    opened(database, batch, 0, 2)
    if ending == "cancelled":
        batches.cancel("t", batch)
    else:
        overdue(database, batch)
        batches.expire_due()
    assert told(database, batches.find("t", batch)) == ([], [], 0, False)
    closed(database, batch)
    ended(database, batch)
    found = batches.find("t", batch)
    assert told(database, found) == ([1, 3, 4, 5], [0, 2, 6, 7, 8, 9, 10], 11, True)
    assert told(database, found, offset=2, limit=6) == ([3, 4, 5], [2, 6, 7], 8, False)
    lines = [
        json.loads(line)
        for page in read_error_pages(database, found, find_window(database, found))
        for line in page.splitlines()
    ]
    assert [line["custom_id"] for line in lines] == [f"c{line['index']}" for line in lines]
    assert {line["error"]["title"] for line in lines if line["index"] != 7} == {ending.capitalize()}


def test_pages_are_as_one(batches: Batches, database: Database) -> None:
    batch = batches.submit(submission(), chunks(200)).id
    recorded(database, batch, range(200))
    found = batches.find("t", batch)
    pages = list(read_result_pages(database, found, find_window(database, found)))
    assert len(pages) == 4
    assert b"".join(pages) == b"".join(
        page
        for start in range(0, 200, 7)
        for page in read_result_pages(database, found, find_window(database, found, offset=start, limit=7))
    )


def test_who_reads_a_batch_that_is_deleted_is_told(batches: Batches, database: Database) -> None:
    batch = batches.submit(submission(), chunks(100)).id
    recorded(database, batch, range(100))
    ended(database, batch)
    found = batches.find("t", batch)
    pages = read_result_pages(database, found, find_window(database, found))
    next(pages)
    batches.delete("t", batch)
    with pytest.raises(UnknownJobError, match="while it was read"):
        list(pages)


def test_what_came_before_there_was_any_key_is_the_first_ones_tenants(batches: Batches, database: Database) -> None:
    batch = batches.submit(submission(tenant="", key="k"), chunks(2))
    keys = Keys(database)
    keys.create(name="first", tenant="acme")
    assert batches.find("acme", batch.id).request_counts.total == 2
    assert batches.find_submitted("acme", "k", "f") is not None
    with pytest.raises(UnknownJobError):
        batches.find("", batch.id)
    late = batches.submit(submission(tenant=""), chunks(1))
    keys.create(name="second", tenant="other")
    assert not batches.page("other", limit=10).data
    assert batches.find("", late.id).id == late.id


def count_calls(work: Callable[[], object]) -> int:
    """Calls of Python's functions, once all that is kept has been made."""
    work()
    calls = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def test_what_is_asked_all_the_time_is_put_into_words_once(batches: Batches, database: Database) -> None:
    """Building the statements takes thousands of calls, which whoever watches a batch would take from all others."""
    batch, worker = batches.submit(submission(), chunks(1)).id, Chunks(database, "w")
    assert count_calls(lambda: batches.find("t", batch)) < 700
    assert worker.claim()
    assert count_calls(worker.claim) < 700
