"""Whatever happens to batches, in any order: counts add up, and what has ended stays as it is."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from service.errors import JobStateError
from service.store.database import open_database
from service.store.jobs.job import ENDED_STATUSES, PAUSED_STATUSES, STOPPABLE_STATUSES
from service.store.jobs.jobs import Batch, Batches
from service.store.jobs.leases import Pause
from service.store.jobs.results import find_window, read_result_pages
from service.store.jobs.workers import Workers
from service.store.tables import BATCHES, CHUNKS, METADATA, RESULTS
from tests.bulk import examples
from tests.store.played import PLAYER, closed, ended, opened, overdue, paused, ready, recorded
from tests.store.test_store_batches import chunks, submission, told


class Lives(RuleBasedStateMachine):
    """Batches that are submitted, worked on, stopped and deleted by chance."""

    made = Bundle("made")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = open_database(f"sqlite:///{Path(self.folder.name) / 'store.db'}")
        sa.event.listen(self.database.engine, "connect", lambda made, _: made.execute("PRAGMA synchronous=OFF"))
        with self.database.begin() as connection:  # quicker than its migrations
            METADATA.create_all(connection)
        self.batches = Batches(self.database)
        self.terminal: dict[str, Batch] = {}
        self.lines: dict[str, bytes] = {}
        self.alive: set[str] = set()

    def teardown(self) -> None:
        self.database.close()
        self.folder.cleanup()

    @rule(target=made, sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3), capped=st.booleans())
    def submit(self, sizes: list[int], capped: bool) -> str:
        batch = self.batches.submit(submission(budget_usd=9.0 if capped else None), chunks(*sizes)).id
        self.alive.add(batch)
        return batch

    @rule(batch=made, number=st.integers(0, 2))
    def begin(self, batch: str, number: int) -> None:
        if batch in self.alive and self.batches.find("t", batch).status == "in_progress":
            opened(self.database, batch, number)

    @rule(dies=st.booleans())
    def go(self, dies: bool) -> None:
        workers = Workers(self.database)
        workers.beat(PLAYER)
        [worker] = workers.list_workers()
        assert workers.reclaim(worker) is not None if dies else workers.leave(PLAYER) >= 0

    @rule(batch=made, position=st.integers(0, 8), ok=st.booleans())
    def record(self, batch: str, position: int, ok: bool) -> None:
        with self.database.read() as connection:
            chunk = connection.execute(
                sa.select(CHUNKS).where(
                    CHUNKS.c.batch == batch, CHUNKS.c.first <= position, CHUNKS.c.first + CHUNKS.c.size > position
                )
            ).one_or_none()
            there = connection.execute(
                sa.select(RESULTS).where(RESULTS.c.batch == batch, RESULTS.c.position == position)
            ).one_or_none()
        if chunk is not None and chunk.state != "done" and there is None:
            recorded(self.database, batch, [position], ok=ok)

    @rule(batch=made, status=st.sampled_from(get_args(Pause)))
    def pause(self, batch: str, status: Pause) -> None:
        paused(self.database, batch, status)

    @rule(batch=made)
    def stop_for_now(self, batch: str) -> None:
        if batch in self.alive:
            with suppress(JobStateError):
                assert self.batches.pause("t", batch).status in {"paused", "paused_budget"}

    @rule(batch=made)
    def retry(self, batch: str) -> None:
        if batch in self.alive:
            with suppress(JobStateError):
                assert self.batches.retry("t", batch).status == "in_progress"
                self.terminal.pop(batch, None)

    @rule(batch=made)
    def resume(self, batch: str) -> None:
        if batch not in self.alive:
            return
        before = self.batches.find("t", batch)
        higher = None if before.budget_usd is None else before.budget_usd + 1.0
        try:
            assert self.batches.resume("t", batch, budget_usd=higher).status == "in_progress"
            assert before.status in PAUSED_STATUSES
        except JobStateError:
            assert before.status not in PAUSED_STATUSES

    @rule(batch=made)
    def cancel(self, batch: str) -> None:
        if batch in self.alive:
            assert self.batches.cancel("t", batch).status not in {"in_progress", *PAUSED_STATUSES}

    @rule(batch=made)
    def expire(self, batch: str) -> None:
        if batch in self.alive and not self.batches.find("t", batch).ended:
            overdue(self.database, batch)
            self.batches.expire_due()

    @rule(batch=made)
    def stop(self, batch: str) -> None:
        if batch in self.alive and self.batches.find("t", batch).status in ("cancelling", "finalizing"):
            with self.database.read() as connection:
                left = connection.execute(sa.select(BATCHES.c.open_chunks).where(BATCHES.c.id == batch)).scalar_one()
            if left:
                closed(self.database, batch)
            ended(self.database, batch)

    @rule(batch=consumes(made))
    def delete(self, batch: str) -> None:
        was = self.batches.find("t", batch).status
        if was in ENDED_STATUSES:
            self.batches.delete("t", batch)
            self.alive.discard(batch)
            return
        with pytest.raises(JobStateError):
            self.batches.delete("t", batch)

    @invariant()
    def counts_add_up(self) -> None:
        with self.database.read() as connection:
            rows = {row.id: row for row in connection.execute(sa.select(BATCHES))}
            open_chunks = dict(
                map(
                    tuple,
                    connection.execute(
                        sa.select(CHUNKS.c.batch, sa.func.count())
                        .where(CHUNKS.c.state != "done", CHUNKS.c.kind == "chunk")
                        .group_by(CHUNKS.c.batch)
                    ),
                )
            )
        assert set(rows) == self.alive
        for name, row in rows.items():
            assert row.open_chunks == open_chunks.get(name, 0)
            assert row.status in STOPPABLE_STATUSES or not ready(self.database, name)  # nobody would claim it
            self.check(self.batches.find("t", name))

    def check(self, batch: Batch) -> None:
        counts, found = batch.request_counts, find_window(self.database, batch)
        never_run = counts.total - counts.completed - counts.failed
        assert counts.cancelled + counts.expired == (never_run if batch.ended else 0)
        results, errors, end, complete = told(self.database, batch)
        assert sorted(results + errors) == list(range(end))
        assert complete == batch.ended == (end == counts.total and batch.ended)
        if batch.ended:
            assert self.terminal.setdefault(batch.id, batch) == batch
        text = b"".join(read_result_pages(self.database, batch, found))
        assert text.startswith(self.lines.get(batch.id, b""))
        self.lines[batch.id] = text


@pytest.mark.whole
def test_counts_add_up_and_what_has_ended_stays_whatever_happens() -> None:
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=examples(8),
            stateful_step_count=20,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
