"""A client of one application that plays the worker behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from service.api.app import create_app
from service.engine import Engine
from service.errors import WebhookError
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.runner import Runner
from service.jobs.worker import Worker
from service.reading.strict_json import Limits
from service.registry import Registry
from service.settings import Settings
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.duties import claim_duty
from service.store.jobs.leases import ClaimedChunk
from service.wiring import build_demo_judging
from tests.api.asgi_caller import LINES, Answer, Ask, Client, jsonl

SMALL = Settings(batch_chunk=16, batch_max_items=200, max_body_bytes=100_000)
ENGINE = Engine(Registry(), judging=build_demo_judging())


async def refuse(batch: str) -> None:
    raise WebhookError(f"nobody is told of {batch}", retryable=False)


class PlayedClient(Client):
    """Asks one application, and plays the worker behind it."""

    def __init__(self, ask: Ask, database: Database, *, engine: Engine = ENGINE, settings: Settings = SMALL) -> None:
        super().__init__(ask, create_app(settings, engine=engine, database=database))
        self.database = database
        self._engine = engine

    def submit(self, rows: Sequence[Any], **query: object) -> dict[str, Any]:
        """Submits a calibration of labelled items and predictions."""
        answer = self("POST", "/v1/calibrations", jsonl(*rows), LINES, **query)
        assert answer.status == 202, answer.body
        assert answer.headers["location"] == f"/v1/calibrations/{answer.json['id']}"
        return answer.json

    def refused(self, status: int, rows: Sequence[Any], **query: object) -> Any:
        answer = self("POST", "/v1/calibrations", jsonl(*rows), LINES, **query)
        assert answer.status == status, answer.body
        assert not self("GET", "/v1/calibrations").json["data"]
        return answer.problem

    def find(self, name: str, more: str = "", **query: object) -> Answer:
        return self("GET", f"/v1/calibrations/{name}{more}", **query)

    def work(self) -> None:
        """Works on what is due until nothing is."""
        asyncio.run(self._work())

    async def _work(self) -> None:
        chunks = Chunks(self.database, "played")
        runner = Runner(chunks, ItemScorer(self._engine, widen_limits(Limits())), in_flight=8)
        while isinstance(chunk := chunks.claim(), ClaimedChunk):
            await runner.run(chunk)
        worker = Worker(chunks, runner, refuse)
        while (duty := claim_duty(self.database, chunks.owner, ["finish"])) is not None:
            await worker.fulfil(duty)
        runner.close()
