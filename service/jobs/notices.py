"""What is told of a batch that has ended, to whom its webhook names."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa

from service.errors import WebhookError
from service.outbound.webhooks import Webhooks
from service.store.batch import BATCH, STEMS, Batch
from service.store.batches import Batches
from service.store.calibrations import CALIBRATION, Calibrations
from service.store.tables import BATCHES


class NoticeSender:
    """Sends notices. None as `webhooks`: none is allowed here, whatever was allowed when the batch came."""

    def __init__(self, batches: Batches, webhooks: Webhooks | None) -> None:
        self._batches = batches
        self._calibrations = Calibrations(batches.of_kind("calibration"))
        self._webhooks = webhooks

    async def notify(self, batch: str) -> None:
        """Tells that a batch has ended. Raises WebhookError."""
        if self._webhooks is None:
            raise WebhookError("no webhook is allowed here", retryable=False)
        url, body = await asyncio.to_thread(self._build_notice, batch)
        await self._webhooks.deliver(url, id=batch, body=body)

    def _build_notice(self, batch: str) -> tuple[str, bytes]:
        with self._batches.database.read() as connection:
            chosen = sa.select(BATCHES.c.tenant, BATCHES.c.kind).where(BATCHES.c.id == batch)
            row = connection.execute(chosen).one_or_none()
        if row is None:
            raise _build_gone_error()
        of_scores = row.kind == "scores"
        found = self._batches.find(row.tenant, batch) if of_scores else self._calibrations.find(row.tenant, batch)
        if found.webhook is None:
            raise _build_gone_error()
        data = BATCH.dump_json(found) if isinstance(found, Batch) else CALIBRATION.dump_json(found)
        event = f"{STEMS[row.kind]}.{found.status}"
        return found.webhook.url, b'{"type":"%b","data":%b}' % (event.encode(), data)


def _build_gone_error() -> WebhookError:
    return WebhookError("the batch is gone", retryable=False)
