"""Send the notice that a job has ended to the webhook it names."""

from __future__ import annotations

import asyncio
from typing import Any

import sqlalchemy as sa

from service.errors import WebhookError
from service.outbound.webhooks import Webhooks
from service.store.database import Database
from service.store.jobs.calibrations import Calibrations
from service.store.jobs.job import ID_PREFIXES
from service.store.jobs.jobs import Batches, Jobs
from service.store.tables import BATCHES


async def send_notice(database: Database, webhooks: Webhooks | None, batch: str) -> None:
    """Send the notice that a batch has ended. Raises WebhookError.

    Without `webhooks` none may be sent now, whatever was allowed when the job was submitted.
    """
    if webhooks is None:
        raise WebhookError("no webhook is allowed here", retryable=False)
    url, body = await asyncio.to_thread(_build_notice, database, batch)
    await webhooks.deliver(url, id=batch, body=body)


def _build_notice(database: Database, batch: str) -> tuple[str, bytes]:
    row = database.read_row(sa.select(BATCHES).where(BATCHES.c.id == batch, BATCHES.c.webhook.is_not(None)))
    if row is None:
        raise WebhookError("the batch is gone", retryable=False)
    kinds: dict[str, type[Jobs[Any]]] = {one.kind: one for one in (Batches, Calibrations)}
    jobs = kinds[row["kind"]](database)
    job = jobs.adapter.dump_json(jobs.find(row["tenant"], batch))
    return row["webhook"], b'{"type":"%b.%b","data":%b}' % (
        *map(str.encode, (ID_PREFIXES[jobs.kind], row["status"])),
        job,
    )
