"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Generic, TypeVar

import httpx
from pydantic import JsonValue

from service.client import calls
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
from service.client.failures import Retries, UnreachableError
from service.client.outcome_lines import (
    Kind,
    LineSplitter,
    OutcomeLines,
    cut_lines,
    find_events,
    read_lines,
    read_position,
)
from service.core.report import Report
from service.errors import CallgradeError
from service.jobs.quotes import Quote
from service.store.jobs.batches import BATCH, Batch
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import JobList

T = TypeVar("T")

POLL_S = 1.0
"""Seconds between two looks for more outcomes."""


class ServiceConnection:
    """A connection to a service; it makes calls, and retries as its `retries` say."""

    def __init__(self, server: str, key: str | None, retries: Retries, sleep: Callable[[float], object]) -> None:
        self.server = server
        self.retries = retries
        self.sleep = sleep
        self._http = httpx.Client(
            base_url=server, headers=build_headers(key), timeout=calls.SHORT_TIMEOUT, verify=calls.get_tls()
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: ServiceCall[T]) -> T:
        """Make a call and return its value. UnreachableError, RefusedError or ForeignError."""
        attempt = 1
        while True:
            try:
                return self._send_once(call)
            except CallgradeError as error:
                wait = self.retries.find_wait(attempt, error)
                if wait is None:
                    raise
            self.sleep(wait)
            attempt += 1

    def _send_once(self, call: ServiceCall[T]) -> T:
        started_at = time.monotonic()
        content = None if call.lines is None else _read_pieces(call.lines)
        with translate_errors():
            answer = self._http.request(call.method, call.path, content=content, **call.build())
        if not answer.is_success:
            raise build_refusal(answer)
        return call.read(ServiceAnswer(answer, time.monotonic() - started_at))

    @contextmanager
    def stream(
        self, path: str, *, timeout: httpx.Timeout = calls.SHORT_TIMEOUT, **params: int
    ) -> Generator[httpx.Response]:
        """Open a response that is read as it arrives."""
        with translate_errors(), self._http.stream("GET", path, params=params, timeout=timeout) as answer:
            if not answer.is_success:
                answer.read()
                raise build_refusal(answer)
            yield answer


class JobClient(Generic[J]):
    """The jobs of one kind. All methods raise UnreachableError, RefusedError and ForeignError."""

    def __init__(self, connection: ServiceConnection, routes: JobCalls[J]) -> None:
        self.connection = connection
        self.routes = routes

    @property
    def server(self) -> str:
        """The address of the service."""
        return self.connection.server

    def find(self, name: str) -> J:
        """Find a job by its id."""
        return self.connection.send(self.routes.find(name))

    def page(self, **options: str) -> JobList[J]:
        """List some jobs, newest first: `status`, `limit`, `after`."""
        return self.connection.send(self.routes.page(options))

    def cancel(self, name: str) -> J:
        """Cancel a job."""
        return self.connection.send(self.routes.cancel(name))

    def resume(self, name: str, *, budget_usd: float | None = None, max_questions: int | None = None) -> J:
        """Resume a paused job."""
        return self.connection.send(self.routes.resume(name, budget_usd, max_questions))

    def delete(self, name: str) -> None:
        """Delete a job that has ended."""
        self.connection.send(self.routes.delete(name))

    def submit(self, lines: BinaryIO, options: Mapping[str, str], *, key: str) -> SubmittedJob[J]:
        """Submit gzipped JSON Lines from the start of a file. `key`: the Idempotency-Key."""
        return self.connection.send(self.routes.submit(lines, options, key))

    def submit_items(
        self, items: Iterable[Mapping[str, object]], *, key: str | None = None, **options: str
    ) -> SubmittedJob[J]:
        """Submit items, a line each.

        `key`: the Idempotency-Key; default: one made from the content. `options`: those of the query.
        """
        with pack_lines(items) as lines:
            return self.submit(lines, options, key=key or build_key(lines, options))

    def events(self, name: str) -> Iterator[J]:  # noqa: ARG002
        """Yield a job whenever it changes, while the connection lasts; nothing if the service has no events for it."""
        return iter(())


class BatchClient(JobClient[Batch]):
    """The batches of a service."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__(connection, BATCHES)

    def quote(self, lines: BinaryIO, options: Mapping[str, str], *, key: str) -> Quote:
        """Ask what a submission would ask of judges."""
        return self.connection.send(self.routes.quote(lines, options, key))

    @contextmanager
    def outcomes(self, batch_id: str, kind: Kind, *, offset: int = 0) -> Generator[OutcomeLines]:
        """Open the lines of a batch from an offset on, as far as it has run."""
        with self.connection.stream(f"{self.routes.path}/{batch_id}/{kind}", offset=offset) as answer:
            next_offset, complete = read_position(answer)
            yield OutcomeLines(next_offset, complete, cut_lines(answer.iter_bytes()))

    def iter_outcomes(
        self, batch_id: str, kind: Kind = "results", *, offset: int = 0, wait: bool = True
    ) -> Iterator[dict[str, JsonValue]]:
        """Yield each outcome from an offset on as it arrives, until the batch ends; `wait` False: those so far.

        Reconnects if a connection breaks, and continues after the last line that arrived whole.
        """
        attempt = 1
        while True:
            try:
                with self.outcomes(batch_id, kind, offset=offset) as lines:
                    for part in lines.parts:
                        for line in read_lines(part):
                            yield line
                            offset, attempt = int(str(line["index"])) + 1, 1
                    offset, complete = lines.next_offset, lines.complete
            except CallgradeError as error:
                pause = self.connection.retries.find_wait(attempt, error)
                if pause is None:
                    raise
                attempt += 1
            else:
                if complete or not wait:
                    return
                pause, attempt = POLL_S, 1
            self.connection.sleep(pause)

    def events(self, name: str) -> Iterator[Batch]:
        """Yield a batch whenever it changes, while the connection lasts."""
        with self.connection.stream(f"{self.routes.path}/{name}/events", timeout=EVENTS_TIMEOUT) as answer:
            splitter = LineSplitter()
            for part in answer.iter_bytes():
                for data in find_events(splitter.cut(part)):
                    yield parse_answer(BATCH, data)


class CalibrationClient(JobClient[Calibration]):
    """The calibrations of a service."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__(connection, CALIBRATIONS)

    def report(self, name: str) -> bytes:
        """Fetch the report of a completed calibration, as JSON."""
        return self.connection.send(self.routes.fetch(name, "report"))

    def fits(self, name: str) -> bytes:
        """Fetch its fits with the names of their files, as JSON."""
        return self.connection.send(self.routes.fetch(name, "fits"))


class Client:
    """A running service: `score`, `batches`, `calibrations`. As a context manager it closes its connections at the end.

    `key`: a key of the service, if it needs one. UnreachableError if nobody answers, RefusedError with the problem
    document if the service refuses, ForeignError if something else answers.
    """

    def __init__(
        self,
        server: str,
        key: str | None = None,
        *,
        retries: Retries = Retries(),  # noqa: B008 (frozen)
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._connection = ServiceConnection(server, key, retries, sleep)
        self.batches = BatchClient(self._connection)
        self.calibrations = CalibrationClient(self._connection)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def score(self, request: Mapping[str, object], *, key: str | None = None) -> Report:
        """Score a request. `key`: the Idempotency-Key; default: a new one."""
        return self._connection.send(calls.score(request, key))


@contextmanager
def translate_errors() -> Generator[None]:
    """Turn httpx's errors into UnreachableError."""
    try:
        yield
    except httpx.HTTPError as error:
        connected = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise UnreachableError(str(error) or type(error).__name__, connected=connected) from None


def _read_pieces(body: BinaryIO) -> Iterator[bytes]:
    body.seek(0)
    while piece := body.read(READ_BYTES):
        yield piece
