"""The client that waits for each answer."""

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
    SILENCE,
    STEP,
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
    read_place,
)
from service.core.report import Report
from service.errors import CallgradeError
from service.jobs.quotes import Quote
from service.store.jobs.batches import BATCH, Batch
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import JobList

T = TypeVar("T")

NEXT_S = 1.0
"""Seconds between two looks for more outcomes."""


class ServiceConnection:
    """One connection to a service; it makes calls, and tries again as its retries say."""

    def __init__(self, server: str, key: str | None, retries: Retries, sleep: Callable[[float], object]) -> None:
        self.server = server
        self.retries = retries
        self.sleep = sleep
        self._http = httpx.Client(
            base_url=server, headers=build_headers(key), timeout=calls.QUICK, verify=calls.get_tls()
        )

    def close(self) -> None:
        """Lets go of connections."""
        self._http.close()

    def send(self, call: ServiceCall[T]) -> T:
        """What a call gives. UnreachableError, RefusedError or ForeignError."""
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
        begun = time.monotonic()
        content = None if call.lines is None else _read_pieces(call.lines)
        with translate_errors():
            answer = self._http.request(call.method, call.path, content=content, **call.build())
        if not answer.is_success:
            raise build_refusal(answer)
        return call.read(ServiceAnswer(answer, time.monotonic() - begun))

    @contextmanager
    def stream(self, path: str, *, timeout: httpx.Timeout = calls.QUICK, **params: int) -> Generator[httpx.Response]:
        """An answer that is read while it comes."""
        with translate_errors(), self._http.stream("GET", path, params=params, timeout=timeout) as answer:
            if not answer.is_success:
                answer.read()
                raise build_refusal(answer)
            yield answer


class JobClient(Generic[J]):
    """The jobs of one kind. UnreachableError, RefusedError and ForeignError from all of its methods."""

    def __init__(self, connection: ServiceConnection, routes: JobCalls[J]) -> None:
        self.connection = connection
        self.routes = routes

    @property
    def server(self) -> str:
        """Where the service is."""
        return self.connection.server

    def find(self, name: str) -> J:
        """The job of an id."""
        return self.connection.send(self.routes.find(name))

    def page(self, **options: str) -> JobList[J]:
        """Some jobs, newest first: `status`, `limit`, `after`."""
        return self.connection.send(self.routes.page(options))

    def cancel(self, name: str) -> J:
        """Lets a job end."""
        return self.connection.send(self.routes.cancel(name))

    def resume(self, name: str, *, budget_usd: float | None = None, max_questions: int | None = None) -> J:
        """Goes on with a paused job."""
        return self.connection.send(self.routes.resume(name, budget_usd, max_questions))

    def delete(self, name: str) -> None:
        """Deletes a job that has ended."""
        self.connection.send(self.routes.delete(name))

    def submit(self, lines: BinaryIO, options: Mapping[str, str], *, key: str) -> SubmittedJob[J]:
        """Submits gzipped JSON Lines from the start of a file. `key`: the Idempotency-Key."""
        return self.connection.send(self.routes.submit(lines, options, key))

    def submit_items(
        self, items: Iterable[Mapping[str, object]], *, key: str | None = None, **options: str
    ) -> SubmittedJob[J]:
        """Submits items, each a line. `key`: the Idempotency-Key; default, one made of the content. `options` as in the query."""
        with pack_lines(items) as lines:
            return self.submit(lines, options, key=key or build_key(lines, options))

    def events(self, name: str) -> Iterator[J]:  # noqa: ARG002
        """A job whenever it changes, for as long as the connection lasts; nothing where the service has no events."""
        return iter(())


class BatchClient(JobClient[Batch]):
    """The batches of a service."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__(connection, BATCHES)

    def quote(self, lines: BinaryIO, options: Mapping[str, str], *, key: str) -> Quote:
        """What a submission would ask of judges."""
        return self.connection.send(self.routes.quote(lines, options, key))

    @contextmanager
    def outcomes(self, batch_id: str, kind: Kind, *, offset: int = 0) -> Generator[OutcomeLines]:
        """The lines of a batch from an offset on, as far as it is."""
        with self.connection.stream(f"{self.routes.path}/{batch_id}/{kind}", offset=offset) as answer:
            following, complete = read_place(answer)
            yield OutcomeLines(following, complete, cut_lines(answer.iter_bytes()))

    def iter_outcomes(
        self, batch_id: str, kind: Kind = "results", *, offset: int = 0, wait: bool = True
    ) -> Iterator[dict[str, JsonValue]]:
        """Each outcome from an offset on as it comes, until the batch has ended; `wait` False: as far as it is now.

        A connection that breaks is made again, and goes on behind the last line that came whole.
        """
        attempt = 1
        while True:
            try:
                with self.outcomes(batch_id, kind, offset=offset) as found:
                    for part in found.parts:
                        for line in read_lines(part):
                            yield line
                            offset, attempt = int(str(line["index"])) + 1, 1
                    offset, complete = found.next_offset, found.complete
            except CallgradeError as error:
                pause = self.connection.retries.find_wait(attempt, error)
                if pause is None:
                    raise
                attempt += 1
            else:
                if complete or not wait:
                    return
                pause, attempt = NEXT_S, 1
            self.connection.sleep(pause)

    def events(self, name: str) -> Iterator[Batch]:
        """A batch whenever it changes, for as long as the connection lasts."""
        with self.connection.stream(f"{self.routes.path}/{name}/events", timeout=SILENCE) as answer:
            splitter = LineSplitter()
            for part in answer.iter_bytes():
                for data in find_events(splitter.cut(part)):
                    yield parse_answer(BATCH, data)


class CalibrationClient(JobClient[Calibration]):
    """The calibrations of a service."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__(connection, CALIBRATIONS)

    def report(self, name: str) -> bytes:
        """The report of a completed one, as JSON."""
        return self.connection.send(self.routes.fetch(name, "report"))

    def fits(self, name: str) -> bytes:
        """Its fits with the names of their files, as JSON."""
        return self.connection.send(self.routes.fetch(name, "fits"))


class Client:
    """A running service: `score`, `batches`, `calibrations`. A context manager, which lets go of connections at its end.

    `key`: a key of the service, where it asks for one. UnreachableError where nobody answers, RefusedError with the problem
    document for an answer that says why not, ForeignError for an answer of somebody else.
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
        """Lets go of connections."""
        self._connection.close()

    def score(self, request: Mapping[str, object], *, key: str | None = None) -> Report:
        """The report of a score request. `key`: the Idempotency-Key; default, one of its own."""
        return self._connection.send(calls.score(request, key))


@contextmanager
def translate_errors() -> Generator[None]:
    """What httpx raises as an UnreachableError."""
    try:
        yield
    except httpx.HTTPError as error:
        begun = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise UnreachableError(str(error) or type(error).__name__, begun=begun) from None


def _read_pieces(body: BinaryIO) -> Iterator[bytes]:
    body.seek(0)
    while piece := body.read(STEP):
        yield piece
