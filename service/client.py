"""Clients of the batches and calibrations of a running service: what it answers as values, what goes wrong as errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import BinaryIO, Generic, Literal, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from service import __version__
from service.errors import CallgradeError
from service.jobs.quotes import QUOTE, Quote
from service.problems import PROBLEM, ProblemDetails, build_details
from service.store.batches import BATCH, BATCH_LIST, Batch
from service.store.calibrations import CALIBRATION, CALIBRATION_LIST, Calibration
from service.store.job import JobList

T = TypeVar("T")

AnyJob = Batch | Calibration
J = TypeVar("J", Batch, Calibration)

Kind = Literal["results", "errors"]

PATIENCE = 300.0
"""Seconds without any answer after which a job is not watched any longer."""

STEP = 2**18
"""Bytes that are sent at once."""

QUICK = httpx.Timeout(60.0, connect=10.0)
AT_LENGTH = httpx.Timeout(900.0, connect=10.0)
"""A large batch is looked through before it is answered for."""
SILENCE = httpx.Timeout(45.0, connect=10.0)
"""A service that is asked for events says something every 15 seconds."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The statuses after which the same request may do better."""


class UnreachableError(CallgradeError):
    """No answer came, or only a part of one. `begun`: whether there was a connection."""

    retryable = True

    def __init__(self, message: str, *, begun: bool = True) -> None:
        self.begun = begun
        super().__init__(message)


class ForeignError(CallgradeError):
    """An answer that is none of callgrade's."""

    def __init__(self) -> None:
        super().__init__("the answer is none of callgrade's")


class RefusedError(CallgradeError):
    """An answer that says why not."""

    def __init__(self, problem: ProblemDetails) -> None:
        self.problem = problem
        self.retryable = problem.status in PASSING
        super().__init__(f"{problem.detail} ({problem.status})")


@dataclass(frozen=True, slots=True)
class SubmittedJob(Generic[J]):
    """A job that was submitted. `earlier`: it was there before, under the same key."""

    job: J
    earlier: bool


@dataclass(slots=True)
class OutcomeLines:
    """Some lines of results or errors, as they come. `next_offset` and `complete` hold once all of them have come."""

    next_offset: int
    complete: bool
    parts: Iterator[bytes]
    """Whole lines, several in each part."""


class JobClient(Generic[J]):
    """One connection to the jobs of a service. UnreachableError, RefusedError and ForeignError from all of its methods."""

    def __init__(
        self, server: str, key: str | None, path: str, form: TypeAdapter[J], listed: TypeAdapter[JobList[J]]
    ) -> None:
        """`form` and `listed`: what one job and some are told as below `path`."""
        headers = {"user-agent": f"callgrade/{__version__}"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self.server = server
        self._http = httpx.Client(base_url=server, headers=headers, timeout=QUICK)
        self._path, self._form, self._listed = path, form, listed

    def close(self) -> None:
        """Lets go of connections."""
        self._http.close()

    def find(self, name: str) -> J:
        """The job of an id."""
        return _parse_answer(self._form, self._request("GET", f"/{name}"))

    def page(self, **options: str) -> JobList[J]:
        """Some jobs, newest first."""
        return _parse_answer(self._listed, self._request("GET", "", params=options))

    def cancel(self, name: str) -> J:
        """Lets a job end."""
        return _parse_answer(self._form, self._request("POST", f"/{name}/cancel"))

    def resume(self, name: str, *, budget_usd: float | None = None, max_questions: int | None = None) -> J:
        """Goes on with a paused job."""
        limits = {"budget_usd": budget_usd, "max_questions": max_questions}
        body = {name: limit for name, limit in limits.items() if limit is not None}
        return _parse_answer(self._form, self._request("POST", f"/{name}/resume", json=body))

    def delete(self, name: str) -> None:
        """Deletes a job that has ended."""
        self._request("DELETE", f"/{name}")

    def events(self, name: str) -> Iterator[J]:  # noqa: ARG002
        """A job whenever it changes, for as long as the connection lasts; nothing where the service has no events."""
        return iter(())

    def _post(self, body: BinaryIO, options: Mapping[str, str], key: str) -> tuple[httpx.Response, float]:
        """The answer to gzipped JSON Lines from the start of a file, and the seconds until it came."""
        headers = {"content-type": "application/x-ndjson", "content-encoding": "gzip", "idempotency-key": key}
        begun = time.monotonic()
        body.seek(0)
        with _translate_errors():
            answer = self._http.post(
                self._path, params=options, headers=headers, content=_read_pieces(body), timeout=AT_LENGTH
            )
        _check(answer)
        return answer, time.monotonic() - begun

    def _read_submitted(self, answer: httpx.Response, seconds: float) -> SubmittedJob[J]:
        job = _parse_answer(self._form, answer.content)
        return SubmittedJob(job, _is_earlier(job, answer.headers.get("date"), seconds))

    def _request(self, method: str, path: str, **more: object) -> bytes:
        with _translate_errors():
            answer = self._http.request(method, self._path + path, **more)  # pyright: ignore[reportArgumentType]
        _check(answer)
        return answer.content


class BatchClient(JobClient[Batch]):
    """The batches of a service."""

    def __init__(self, server: str, key: str | None = None) -> None:
        super().__init__(server, key, "/v1/batches", BATCH, BATCH_LIST)

    def submit(self, body: BinaryIO, options: Mapping[str, str], *, key: str) -> SubmittedJob[Batch] | Quote:
        """Submits gzipped JSON Lines from the start of a file; the quote for a dry run. `key`: the Idempotency-Key."""
        answer, seconds = self._post(body, options, key)
        return (
            _parse_answer(QUOTE, answer.content) if answer.status_code == 200 else self._read_submitted(answer, seconds)
        )

    @contextmanager
    def outcomes(self, batch_id: str, kind: Kind, *, offset: int = 0) -> Generator[OutcomeLines]:
        """The lines of a batch from an offset on, as far as it is."""
        with (
            _translate_errors(),
            self._http.stream("GET", f"/v1/batches/{batch_id}/{kind}", params={"offset": offset}) as answer,
        ):
            _check_streamed(answer)
            complete = answer.headers.get("x-callgrade-complete") == "true"
            following = answer.headers.get("x-callgrade-next-offset", "")
            if not following.isdigit():
                raise ForeignError
            yield OutcomeLines(int(following), complete, _split_whole_lines(answer.iter_bytes()))

    def events(self, name: str) -> Iterator[Batch]:
        """A batch whenever it changes, for as long as the connection lasts."""
        with _translate_errors(), self._http.stream("GET", f"/v1/batches/{name}/events", timeout=SILENCE) as answer:
            _check_streamed(answer)
            for part in _split_whole_lines(answer.iter_bytes()):
                for line in part.splitlines():
                    if line.startswith(b"data:"):
                        yield _parse_answer(BATCH, line.removeprefix(b"data:"))


class CalibrationClient(JobClient[Calibration]):
    """The calibrations of a service."""

    def __init__(self, server: str, key: str | None = None) -> None:
        super().__init__(server, key, "/v1/calibrations", CALIBRATION, CALIBRATION_LIST)

    def submit(self, body: BinaryIO, options: Mapping[str, str], *, key: str) -> SubmittedJob[Calibration]:
        """Submits gzipped JSON Lines from the start of a file. `key`: the Idempotency-Key."""
        return self._read_submitted(*self._post(body, options, key))

    def report(self, name: str) -> bytes:
        """The report of a completed one, as JSON."""
        return self._request("GET", f"/{name}/report")

    def fits(self, name: str) -> bytes:
        """Its fits with the names of their files, as JSON."""
        return self._request("GET", f"/{name}/fits")


def watch_job(
    client: JobClient[J],
    name: str,
    *,
    patience: float = PATIENCE,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    lost: Callable[[CallgradeError], object] = lambda _: None,
) -> Iterator[J]:
    """A job whenever it changes, until it has ended. A connection that breaks is made again; without events it is polled.

    UnreachableError where nobody answers at first, and after `patience` seconds without an answer; `lost` is told when
    such a time begins.
    """
    job: J | None = None
    answered_at, wait, streams = now(), 1.0, True
    while not _is_over(job):
        try:
            for job in _read_until_break(client.events(name)) if streams else ():
                answered_at, wait = now(), 1.0
                yield job
        except (RefusedError, ForeignError):
            streams = False  # something on the way that lets no events pass; of another refusal the next request tells
        if _is_over(job):
            return
        try:
            job = client.find(name)
            answered_at, wait = now(), 1.0
            yield job
            if _is_over(job):
                return
        except CallgradeError as error:
            if job is None or not error.retryable or now() - answered_at > patience:
                raise
            if wait == 1.0:
                lost(error)
        sleep(wait)
        wait = min(10.0, wait * 2)


def _read_until_break(jobs: Iterator[J]) -> Iterator[J]:
    with suppress(UnreachableError):
        yield from jobs


def _is_over(job: AnyJob | None) -> bool:
    return job is not None and job.ended


@contextmanager
def _translate_errors() -> Generator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        begun = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise UnreachableError(str(error) or type(error).__name__, begun=begun) from None


def _check(answer: httpx.Response) -> None:
    if not answer.is_success:
        raise RefusedError(_read_problem(answer))


def _check_streamed(answer: httpx.Response) -> None:
    if not answer.is_success:
        answer.read()
        raise RefusedError(_read_problem(answer))


def _read_problem(answer: httpx.Response) -> ProblemDetails:
    """The problem document; where something on the way has answered, its status in words."""
    try:
        return PROBLEM.validate_json(answer.content)
    except ValidationError:
        return build_details(answer.status_code, f"answered {answer.status_code} {answer.reason_phrase}".rstrip())


def _parse_answer(form: TypeAdapter[T], data: bytes) -> T:
    try:
        return form.validate_json(data)
    except ValidationError:
        raise ForeignError from None


def _read_pieces(body: BinaryIO) -> Iterator[bytes]:
    while piece := body.read(STEP):
        yield piece


def _split_whole_lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, cut at the ends of lines; a line without its end is not whole."""
    rest: list[bytes] = []
    for part in parts:
        before, end, after = part.rpartition(b"\n")
        if end:
            yield b"".join([*rest, before, end])
            rest = []
        rest.append(after)


def _is_earlier(job: AnyJob, date: str | None, seconds: float) -> bool:
    """Whether a job was made before the request that lasted so many seconds, by the service's own clock."""
    if date is None:
        return False
    answered = parsedate_to_datetime(date).astimezone(UTC)
    return datetime.fromisoformat(job.created_at) < answered - timedelta(seconds=seconds + 2)
