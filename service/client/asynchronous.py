"""The client for programs with an event loop: the same calls, awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import BinaryIO, Generic, TypeVar

import httpx
from pydantic import JsonValue

from service.client import calls
from service.client.blocking import POLL_S, translate_errors
from service.client.calls import (
    BATCHES,
    CALIBRATIONS,
    EVENTS_TIMEOUT,
    READ_BYTES,
    J,
    JobCalls,
    ServiceAnswer,
    ServiceCall,
    SubmittedJob,
    build_headers,
    build_key,
    build_refusal,
    pack_lines,
    parse_answer,
)
from service.client.failures import Retries
from service.client.outcome_lines import Kind, LineSplitter, find_events, read_lines, read_position
from service.core.report import Report
from service.errors import CallgradeError
from service.store.jobs.batches import BATCH, Batch
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import JobList

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


class AsyncConnection:
    """A connection to a service; it makes calls, and retries as its `retries` say."""

    def __init__(self, server: str, key: str | None, retries: Retries, sleep: Sleep) -> None:
        self.retries = retries
        self.sleep = sleep
        self._http = httpx.AsyncClient(
            base_url=server, headers=build_headers(key), timeout=calls.SHORT_TIMEOUT, verify=calls.get_tls()
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: ServiceCall[T]) -> T:
        """Make a call and return its value. UnreachableError, RefusedError or ForeignError."""
        attempt = 1
        while True:
            try:
                return await self._send_once(call)
            except CallgradeError as error:
                wait = self.retries.find_wait(attempt, error)
                if wait is None:
                    raise
            await self.sleep(wait)
            attempt += 1

    async def _send_once(self, call: ServiceCall[T]) -> T:
        started_at = time.monotonic()
        content = None if call.lines is None else _read_pieces(call.lines)
        with translate_errors():
            answer = await self._http.request(call.method, call.path, content=content, **call.build())
        if not answer.is_success:
            raise build_refusal(answer)
        return call.read(ServiceAnswer(answer, time.monotonic() - started_at))

    @asynccontextmanager
    async def stream(
        self, path: str, *, limits: httpx.Timeout = calls.SHORT_TIMEOUT, **params: int
    ) -> AsyncGenerator[httpx.Response]:
        """Open a response that is read as it arrives."""
        with translate_errors():
            async with self._http.stream("GET", path, params=params, timeout=limits) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise build_refusal(answer)
                yield answer


class AsyncJobs(Generic[J]):
    """The jobs of one kind, with the methods of `JobClient`."""

    def __init__(self, connection: AsyncConnection, routes: JobCalls[J]) -> None:
        self.connection = connection
        self.routes = routes

    async def find(self, name: str) -> J:
        """Find a job by its id."""
        return await self.connection.send(self.routes.find(name))

    async def page(self, **options: str) -> JobList[J]:
        """List some jobs, newest first: `status`, `limit`, `after`."""
        return await self.connection.send(self.routes.page(options))

    async def cancel(self, name: str) -> J:
        """Cancel a job."""
        return await self.connection.send(self.routes.cancel(name))

    async def resume(self, name: str, *, budget_usd: float | None = None, max_questions: int | None = None) -> J:
        """Resume a paused job."""
        return await self.connection.send(self.routes.resume(name, budget_usd, max_questions))

    async def delete(self, name: str) -> None:
        """Delete a job that has ended."""
        await self.connection.send(self.routes.delete(name))

    async def submit_items(
        self, items: Iterable[Mapping[str, object]], *, key: str | None = None, **options: str
    ) -> SubmittedJob[J]:
        """Submit items, a line each.

        `key`: the Idempotency-Key; default: one made from the content. `options`: those of the query.
        """
        with await asyncio.to_thread(pack_lines, items) as lines:
            idempotency_key = key or await asyncio.to_thread(build_key, lines, options)
            return await self.connection.send(self.routes.submit(lines, options, idempotency_key))


class AsyncBatches(AsyncJobs[Batch]):
    """The batches of a service."""

    async def iter_outcomes(
        self, batch_id: str, kind: Kind = "results", *, offset: int = 0, wait: bool = True
    ) -> AsyncIterator[dict[str, JsonValue]]:
        """Yield each outcome from an offset on as it arrives, as `BatchClient.iter_outcomes` does."""
        attempt = 1
        while True:
            try:
                async with self.connection.stream(f"{self.routes.path}/{batch_id}/{kind}", offset=offset) as answer:
                    next_offset, complete = read_position(answer)
                    splitter = LineSplitter()
                    async for part in answer.aiter_bytes():
                        for line in read_lines(splitter.cut(part)):
                            yield line
                            offset, attempt = int(str(line["index"])) + 1, 1
                    splitter.require_end()
                    offset = next_offset
            except CallgradeError as error:
                pause = self.connection.retries.find_wait(attempt, error)
                if pause is None:
                    raise
                attempt += 1
            else:
                if complete or not wait:
                    return
                pause, attempt = POLL_S, 1
            await self.connection.sleep(pause)

    async def events(self, name: str) -> AsyncIterator[Batch]:
        """Yield a batch whenever it changes, while the connection lasts."""
        async with self.connection.stream(f"{self.routes.path}/{name}/events", limits=EVENTS_TIMEOUT) as answer:
            splitter = LineSplitter()
            async for part in answer.aiter_bytes():
                for data in find_events(splitter.cut(part)):
                    yield parse_answer(BATCH, data)


class AsyncCalibrations(AsyncJobs[Calibration]):
    """The calibrations of a service."""

    async def report(self, name: str) -> bytes:
        """Fetch the report of a completed calibration, as JSON."""
        return await self.connection.send(self.routes.fetch(name, "report"))

    async def fits(self, name: str) -> bytes:
        """Fetch its fits with the names of their files, as JSON."""
        return await self.connection.send(self.routes.fetch(name, "fits"))


class AsyncClient:
    """Like `Client`, for programs with an event loop; `async with` closes its connections at the end."""

    def __init__(
        self,
        server: str,
        key: str | None = None,
        *,
        retries: Retries = Retries(),  # noqa: B008 (frozen)
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._connection = AsyncConnection(server, key, retries, sleep)
        self.batches = AsyncBatches(self._connection, BATCHES)
        self.calibrations = AsyncCalibrations(self._connection, CALIBRATIONS)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def score(self, request: Mapping[str, object], *, key: str | None = None) -> Report:
        """Score a request. `key`: the Idempotency-Key; default: a new one."""
        return await self._connection.send(calls.score(request, key))


async def _read_pieces(body: BinaryIO) -> AsyncIterator[bytes]:
    body.seek(0)
    while piece := await asyncio.to_thread(body.read, READ_BYTES):
        yield piece
