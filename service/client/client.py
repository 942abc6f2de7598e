"""The client of a running service, for programs and the command line: jobs are values that one submits, follows and reads."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Generic, Literal, TypeVar, cast

import httpx
from pydantic import JsonValue, TypeAdapter

from service.client.connection import (
    LONG_TIMEOUT,
    READ_BYTES,
    ForeignError,
    Retries,
    ServiceConnection,
    UnreachableError,
    measure_age,
    parse_answer,
)
from service.core.report import Report
from service.errors import CallgradeError
from service.jobs.quotes import QUOTE, Quote
from service.reporting.summaries import build_report_adapter
from service.store.jobs.calibrations import CALIBRATION, CALIBRATION_LIST, Calibration
from service.store.jobs.job import JobList
from service.store.jobs.jobs import BATCH, BATCH_LIST, Batch


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

    def score(self, request: Mapping[str, object]) -> Report:
        """Score a request. A retry takes from the service's cache what judges answered before."""
        answer = self._connection.send("POST", "/v1/score", json=request, timeout=LONG_TIMEOUT)
        return parse_answer(build_report_adapter(), answer.content)


AnyJob = Batch | Calibration
J = TypeVar("J", Batch, Calibration)
Kind = Literal["results", "errors"]

POLL_S = 1.0
"""Seconds between two looks at a job, or for more of its outcomes."""
PATIENCE_S = 300.0
"""Seconds without any answer after which watching ends."""
MAX_MEMORY_BYTES = 2**24
"""Bytes of packed lines that are kept in memory before they go to a temporary file."""


@dataclass(frozen=True, slots=True)
class SubmittedJob(Generic[J]):
    """A job that was submitted. `earlier`: it existed already, under the same key."""

    job: J
    earlier: bool


class JobClient(Generic[J]):
    """The jobs of one kind. All methods raise UnreachableError, RefusedError and ForeignError."""

    def __init__(
        self, connection: ServiceConnection, path: str, form: TypeAdapter[J], list_form: TypeAdapter[JobList[J]]
    ) -> None:
        self._connection = connection
        self._path = path
        self._form = form
        self._list_form = list_form

    def find(self, name: str) -> J:
        """Find a job by its id."""
        return self._read(self._connection.send("GET", f"{self._path}/{name}"))

    def page(self, **options: str) -> JobList[J]:
        """List some jobs, newest first: `status`, `limit`, `after`."""
        return parse_answer(self._list_form, self._connection.send("GET", self._path, params=options).content)

    def cancel(self, name: str) -> J:
        """Cancel a job."""
        return self._read(self._connection.send("POST", f"{self._path}/{name}/cancel"))

    def pause(self, name: str) -> J:
        """Pause a job until it is resumed."""
        return self._read(self._connection.send("POST", f"{self._path}/{name}/pause"))

    def retry(self, name: str) -> J:
        """Run the failed items of an ended job again."""
        return self._read(self._connection.send("POST", f"{self._path}/{name}/retry"))

    def resume(self, name: str, *, budget_usd: float | None = None, max_questions: int | None = None) -> J:
        """Resume a paused job, with other limits if given."""
        limits = {"budget_usd": budget_usd, "max_questions": max_questions}
        body = {name: limit for name, limit in limits.items() if limit is not None}
        return self._read(self._connection.send("POST", f"{self._path}/{name}/resume", json=body))

    def delete(self, name: str) -> None:
        """Delete a job that has ended."""
        self._connection.send("DELETE", f"{self._path}/{name}")

    def submit(self, lines: BinaryIO, options: Mapping[str, str], key: str) -> SubmittedJob[J]:
        """Submit gzipped JSON Lines from the start of a file. `options`: those of the route; `key`: the Idempotency-Key."""
        answer = self._send_lines(lines, options, key)
        job = self._read(answer)
        return SubmittedJob(job, earlier=measure_age(answer, job.created_at) > 2)

    def submit_items(
        self, items: Iterable[Mapping[str, object]], *, key: str | None = None, **options: str
    ) -> SubmittedJob[J]:
        """Submit items, a line each. `key`: the Idempotency-Key; default: one made from the content."""
        with pack_lines(items) as lines:
            return self.submit(lines, options, key or build_key(lines, options))

    def watch(
        self,
        name: str,
        *,
        patience: float = PATIENCE_S,
        now: Callable[[], float] = time.monotonic,
        on_disconnect: Callable[[CallgradeError], object] = lambda _: None,
    ) -> Iterator[J]:
        """Yield a job whenever it changes, until it has ended.

        UnreachableError if nobody answers at first, or for `patience` seconds; `on_disconnect` is called when such a time begins.
        """
        job: J | None = None
        answered_at, wait = now(), POLL_S
        while True:
            try:
                before, job = job, self.find(name)
                answered_at, wait = now(), POLL_S
                if job != before:
                    yield job
                if job.ended:
                    return
            except CallgradeError as error:
                if job is None or not error.retryable or now() - answered_at > patience:
                    raise
                if wait == POLL_S:
                    on_disconnect(error)
                wait = min(10.0, wait * 2)
            self._connection.sleep(wait)

    def _send_lines(self, lines: BinaryIO, options: Mapping[str, str], key: str) -> httpx.Response:
        return self._connection.send("POST", self._path, lines=lines, key=key, params=options, timeout=LONG_TIMEOUT)

    def _read(self, answer: httpx.Response) -> J:
        return parse_answer(self._form, answer.content)


class BatchClient(JobClient[Batch]):
    """The batches of a service."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__(connection, "/v1/batches", BATCH, BATCH_LIST)

    def quote(self, lines: BinaryIO, options: Mapping[str, str], key: str) -> Quote:
        """Ask what a submission would ask of judges; nothing is stored."""
        return parse_answer(QUOTE, self._send_lines(lines, {**options, "dry_run": "true"}, key).content)

    def count_undecided(self, batch_id: str) -> int:
        """Count the items whose verdict is undecided so far."""
        breakdown = json.loads(self._connection.send("GET", f"{self._path}/{batch_id}/breakdown").content)
        return int(breakdown["whole"]["verdicts"].get("undecided", 0))

    def iter_lines(
        self, batch_id: str, kind: Kind = "results", *, offset: int = 0, wait: bool = True
    ) -> Iterator[bytes]:
        """Yield each outcome from an offset on as its line arrives, until the batch ends.

        Reconnects if a connection breaks, and continues after the last line that arrived whole. `wait` False: those so far, also
        behind an item that is not done; raises if the connection breaks among them.
        """
        attempt, path = 1, f"{self._path}/{batch_id}/{kind}"
        while True:
            line = b""
            try:
                with self._connection.stream(path, params={"offset": str(offset)} if wait else {}) as answer:
                    next_offset = answer.headers.get("x-callgrade-next-offset", "")
                    if not next_offset.isdigit():
                        raise ForeignError
                    for part in cut_lines(answer.iter_bytes()):
                        for line in part.split(b"\n")[:-1]:
                            yield line
                            attempt = 1
                    offset, complete = int(next_offset), answer.headers.get("x-callgrade-complete") == "true"
            except CallgradeError as error:
                offset = int(json.loads(line)["index"]) + 1 if line else offset
                pause = self._connection.retries.find_wait(attempt, error)
                if pause is None or (line and not wait):
                    raise
                attempt += 1
            else:
                if complete or not wait:
                    return
                pause, attempt = POLL_S, 1
            self._connection.sleep(pause)

    def iter_outcomes(
        self, batch_id: str, kind: Kind = "results", *, offset: int = 0, wait: bool = True
    ) -> Iterator[dict[str, JsonValue]]:
        """Yield each outcome as a value, in the same way."""
        for line in self.iter_lines(batch_id, kind, offset=offset, wait=wait):
            yield cast("dict[str, JsonValue]", json.loads(line))


class CalibrationClient(JobClient[Calibration]):
    """The calibrations of a service."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__(connection, "/v1/calibrations", CALIBRATION, CALIBRATION_LIST)

    def report(self, name: str) -> bytes:
        """Fetch the report of a completed calibration, as JSON."""
        return self._connection.send("GET", f"{self._path}/{name}/report").content

    def fits(self, name: str) -> bytes:
        """Fetch its fits with the names of their files, as JSON."""
        return self._connection.send("GET", f"{self._path}/{name}/fits").content


def cut_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines, several in each part. UnreachableError if the last is incomplete: something in between cut it off."""
    rest: list[bytes] = []
    for piece in pieces:
        before, end, after = piece.rpartition(b"\n")
        if end:
            yield b"".join([*rest, before, end])
            rest = [after]
        else:
            rest.append(piece)
    if any(rest):
        raise UnreachableError("the answer ends within a line")


def pack_lines(requests: Iterable[Mapping[str, object]]) -> BinaryIO:
    """Pack requests into gzipped JSON Lines: the same bytes for the same requests."""
    packed = cast("BinaryIO", SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES))  # noqa: SIM115 (the sender closes it)
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        for request in requests:
            file.write(json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    packed.seek(0)
    return packed


def build_key(lines: BinaryIO, options: Mapping[str, str]) -> str:
    """Build an Idempotency-Key from what is submitted, so that the same submission counts once."""
    digest = sha256(json.dumps(dict(options), sort_keys=True).encode())
    lines.seek(0)
    while piece := lines.read(READ_BYTES):
        digest.update(piece)
    return f"callgrade-{digest.hexdigest()}"
