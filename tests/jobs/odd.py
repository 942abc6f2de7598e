"""A worker that behaves strangely, in the way that its argument names (`WAYS`)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from service.cli.commands.worker import supervised_workers
from service.core.judging.prompts import Completion, Prompt
from service.core.plan import Plan
from service.engine import Engine
from service.jobs import worker
from service.jobs.provider_judging import Polling
from service.reading.request import ScoreRequest
from service.store import database
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ClaimedChunk, OutcomeRow
from tests.jobs.plain import Plain, run_worker

DEADLY = "Refund order 66."
"""What a judge is shown of an item that takes down who asks."""


class Freezing(Chunks):
    """Chunks with a moment that takes as long as somebody likes: as by SIGSTOP, once."""

    moment = sys.argv[-1]

    def claim(self, *, idle: bool = True, besides: Collection[str] = ()) -> ClaimedChunk | None:
        claimed = super().claim(idle=idle, besides=besides)
        if claimed is not None:
            self._pass("frozen-at-claim")
        return claimed

    def _insert(self, connection: sa.Connection, batch: str, new: list[OutcomeRow]) -> None:
        super()._insert(connection, batch, new)
        self._pass("frozen-at-record")

    def _pass(self, moment: str) -> None:
        if self.moment == moment:
            self.moment = ""
            print("frozen", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)


class Poisoned(Engine):
    """Dies of the plan of an item, as by the kernel where there is no memory left."""

    def plan(self, request: ScoreRequest) -> Plan:
        if request.tags.get("poison") == "code":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().plan(request)


class Deadly(Plain):
    """Dies of a question."""

    async def complete(self, prompt: Prompt) -> Completion:
        if any(DEADLY in turn.text for turn in prompt.turns):
            await asyncio.sleep(0.05)  # others are under way too
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().complete(prompt)


def poison() -> None:
    os.environ["SILENT"] = "0.5"  # a dead one is told at the second look, not the tenth: no other lives beside it
    run_worker(model=Deadly, kind=Poisoned)


def sweep() -> None:
    worker.SWEEP_INTERVAL_S = 0.2
    run_worker()


CHANGE = '''"""What a later version adds."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "later", "{head}", None, None


def upgrade() -> None:
    op.add_column("callgrade_batches", sa.Column("later", sa.Text))
    op.add_column("callgrade_chunks", sa.Column("later", sa.Integer, nullable=False, server_default="0"))
    op.create_table("callgrade_later", sa.Column("id", sa.Text, primary_key=True))
'''


def come_later() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "migrations"
        shutil.copytree(database.MIGRATIONS, folder)
        config = Config()
        config.set_main_option("script_location", str(folder))
        config.set_main_option("path_separator", "os")
        head = ScriptDirectory.from_config(config).get_current_head()
        (folder / "versions" / "later.py").write_text(CHANGE.format(head=head))
        database.MIGRATIONS = folder
        run_worker()


def be_parent() -> None:
    with supervised_workers(1, grace=5.0, stopping=threading.Event()):
        time.sleep(600)


WAYS = {
    "batched": partial(run_worker, engine=None, polling=Polling(0.05, 0.2, 0.2)),  # looks often at providers' batches
    "frozen-at-claim": partial(run_worker, build_chunks=Freezing),  # when it has claimed a chunk and not begun it
    "frozen-at-record": partial(run_worker, build_chunks=Freezing),  # in a transaction that has written outcomes
    "later": come_later,  # of a later version of callgrade, which has changed the tables
    "parent": be_parent,  # a process with a worker beside it, as `callgrade serve` is one
    "poisoned": poison,  # items with the tag `poison`, and the question about order 66, take it down
    "sweeping": sweep,  # looks for what has expired five times a second
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
