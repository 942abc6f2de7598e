"""Send the notice that a job has ended to the webhook it names."""

from __future__ import annotations

import asyncio
from typing import Any

import sqlalchemy as sa

from service.errors import WebhookError
from service.outbound.webhooks import Webhooks
from service.store.database import Database
from service.store.jobs.batches import Batches
from service.store.jobs.calibrations import Calibrations
from service.store.jobs.job import ID_PREFIXES
from service.store.jobs.jobs import Jobs
from service.store.tables import BATCHES


class NoticeSender:
    """Sends notices. Without `webhooks` none may be sent now, whatever was allowed when the job was submitted."""

    def __init__(self, database: Database, webhooks: Webhooks | None) -> None:
        self._database = database
        self._jobs: dict[str, Jobs[Any]] = {kind.kind: kind(database) for kind in (Batches, Calibrations)}
        self._webhooks = webhooks

    async def notify(self, batch: str) -> None:
        """Send the notice that a batch has ended. Raises WebhookError."""
        if self._webhooks is None:
            raise WebhookError("no webhook is allowed here", retryable=False)
        url, body = await asyncio.to_thread(self._build_notice, batch)
        await self._webhooks.deliver(url, id=batch, body=body)

    def _build_notice(self, batch: str) -> tuple[str, bytes]:
        with self._database.read() as connection:
            query = sa.select(BATCHES.c.tenant, BATCHES.c.kind).where(BATCHES.c.id == batch)
            row = connection.execute(query).one_or_none()
        if row is None:
            raise _build_gone_error()
        jobs = self._jobs[row.kind]
        job = jobs.find(row.tenant, batch)
        if job.webhook is None:
            raise _build_gone_error()
        event = f"{ID_PREFIXES[row.kind]}.{job.status}"
        return job.webhook.url, b'{"type":"%b","data":%b}' % (event.encode(), jobs.adapter.dump_json(job))


def _build_gone_error() -> WebhookError:
    return WebhookError("the batch is gone", retryable=False)
