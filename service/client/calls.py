"""Each call of the service as data: what is sent, and how the answer is read. Both clients perform the same calls."""

from __future__ import annotations

import gzip
import json
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from hashlib import sha256
from secrets import token_hex
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar, cast

import httpx
from pydantic import TypeAdapter, ValidationError

from service import __version__
from service.client.failures import ForeignError, RefusedError
from service.core.report import Report
from service.jobs.quotes import QUOTE, Quote
from service.problems import PROBLEM, ProblemDetails, build_details
from service.reporting.summaries import build_report_adapter
from service.store.jobs.batches import BATCH, BATCH_LIST, Batch
from service.store.jobs.calibrations import CALIBRATION, CALIBRATION_LIST, Calibration
from service.store.jobs.job import JobList

T = TypeVar("T")
AnyJob = Batch | Calibration
J = TypeVar("J", Batch, Calibration)

SHORT_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
LONG_TIMEOUT = httpx.Timeout(900.0, connect=10.0)
"""The service checks a large batch before it answers, and a judge takes its time."""
EVENTS_TIMEOUT = httpx.Timeout(45.0, connect=10.0)
"""An event stream sends something every 15 seconds."""

READ_BYTES = 2**18
"""Bytes that are sent at once."""
MAX_MEMORY_BYTES = 2**24
"""Bytes of packed lines that are kept in memory before they go to a temporary file."""


@cache
def get_tls() -> ssl.SSLContext:
    """Return httpx's own TLS context, built once per process, because that takes longer than many a call."""
    return httpx.create_ssl_context()


class ServiceAnswer(NamedTuple):
    """A response, and the seconds it took."""

    response: httpx.Response
    seconds: float


@dataclass(frozen=True, slots=True)
class ServiceCall(Generic[T]):
    """One request and the reader of its answer. `lines`: gzipped JSON Lines, sent from their start."""

    method: str
    path: str
    read: Callable[[ServiceAnswer], T]
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    json: object = None
    lines: BinaryIO | None = None
    key: str | None = None
    """The Idempotency-Key."""
    timeout: httpx.Timeout = field(default_factory=lambda: SHORT_TIMEOUT)

    def build(self) -> dict[str, Any]:
        """Build the arguments of httpx's `request`, without the body of lines."""
        packed = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}
        headers = {} if self.lines is None else packed
        more: dict[str, Any] = {} if self.json is None else {"json": self.json}
        if self.key:
            headers = {**headers, "idempotency-key": self.key}
        return {"params": dict(self.params), "timeout": self.timeout, "headers": headers, **more}


@dataclass(frozen=True, slots=True)
class SubmittedJob(Generic[J]):
    """A job that was submitted. `earlier`: it existed already, under the same key."""

    job: J
    earlier: bool


@dataclass(frozen=True, slots=True)
class JobCalls(Generic[J]):
    """The calls about one kind of job, below its path."""

    path: str
    form: TypeAdapter[J]
    list_form: TypeAdapter[JobList[J]]

    def find(self, name: str) -> ServiceCall[J]:
        """Find a job by its id."""
        return ServiceCall("GET", f"{self.path}/{name}", self._read)

    def page(self, options: Mapping[str, str]) -> ServiceCall[JobList[J]]:
        """List some jobs, newest first."""
        return ServiceCall(
            "GET", self.path, lambda answer: parse_answer(self.list_form, answer.response.content), options
        )

    def cancel(self, name: str) -> ServiceCall[J]:
        """Cancel a job."""
        return ServiceCall("POST", f"{self.path}/{name}/cancel", self._read)

    def resume(self, name: str, budget_usd: float | None, max_questions: int | None) -> ServiceCall[J]:
        """Resume a paused job."""
        limits = {"budget_usd": budget_usd, "max_questions": max_questions}
        body = {name: limit for name, limit in limits.items() if limit is not None}
        return ServiceCall("POST", f"{self.path}/{name}/resume", self._read, json=body)

    def delete(self, name: str) -> ServiceCall[None]:
        """Delete a job that has ended."""
        return ServiceCall("DELETE", f"{self.path}/{name}", lambda _: None)

    def fetch(self, name: str, part: str) -> ServiceCall[bytes]:
        """Fetch a part of a job as it is: `report`, `fits`."""
        return ServiceCall("GET", f"{self.path}/{name}/{part}", lambda answer: answer.response.content)

    def submit(self, lines: BinaryIO, options: Mapping[str, str], key: str) -> ServiceCall[SubmittedJob[J]]:
        """Submit gzipped JSON Lines under an Idempotency-Key."""
        return ServiceCall("POST", self.path, self._read_submitted, options, lines=lines, key=key, timeout=LONG_TIMEOUT)

    def quote(self, lines: BinaryIO, options: Mapping[str, str], key: str) -> ServiceCall[Quote]:
        """Ask what a submission would ask of judges; nothing is stored."""
        return ServiceCall(
            "POST",
            self.path,
            lambda answer: parse_answer(QUOTE, answer.response.content),
            {**options, "dry_run": "true"},
            lines=lines,
            key=key,
            timeout=LONG_TIMEOUT,
        )

    def _read(self, answer: ServiceAnswer) -> J:
        return parse_answer(self.form, answer.response.content)

    def _read_submitted(self, answer: ServiceAnswer) -> SubmittedJob[J]:
        job = self._read(answer)
        return SubmittedJob(job, _is_earlier(job, answer))


BATCHES: JobCalls[Batch] = JobCalls("/v1/batches", BATCH, BATCH_LIST)
CALIBRATIONS: JobCalls[Calibration] = JobCalls("/v1/calibrations", CALIBRATION, CALIBRATION_LIST)


def score(request: Mapping[str, object], key: str | None) -> ServiceCall[Report]:
    """Score one request. `key`: the Idempotency-Key; None: a new one, so that no retry is paid for twice."""
    return ServiceCall(
        "POST",
        "/v1/score",
        lambda answer: parse_answer(build_report_adapter(), answer.response.content),
        json=request,
        key=key or token_hex(16),
        timeout=LONG_TIMEOUT,
    )


def build_headers(key: str | None) -> dict[str, str]:
    """Build the headers of every request."""
    return {"user-agent": f"callgrade/{__version__}"} | ({"authorization": f"Bearer {key}"} if key else {})


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


def parse_answer(form: TypeAdapter[T], data: bytes) -> T:
    """Parse an answer; ForeignError if it is not of this type."""
    try:
        return form.validate_json(data)
    except ValidationError:
        raise ForeignError from None


def build_refusal(answer: httpx.Response) -> RefusedError:
    """Build the error of an unsuccessful response; its body must be read."""
    return RefusedError(_read_problem(answer), retry_after=_read_wait(answer.headers.get("retry-after")))


def _read_problem(answer: httpx.Response) -> ProblemDetails:
    """Read the problem document; if something in between has answered, describe its status."""
    try:
        return PROBLEM.validate_json(answer.content)
    except ValidationError:
        return build_details(answer.status_code, f"answered {answer.status_code} {answer.reason_phrase}".rstrip())


def _read_wait(header: str | None) -> float | None:
    """Read the seconds of a Retry-After header, which holds seconds or a date."""
    if header is None:
        return None
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _is_earlier(job: AnyJob, answer: ServiceAnswer) -> bool:
    """Whether a job was made before the request, by the service's own clock."""
    date = answer.response.headers.get("date")
    if date is None:
        return False
    answered = parsedate_to_datetime(date).astimezone(UTC)
    return datetime.fromisoformat(job.created_at) < answered - timedelta(seconds=answer.seconds + 2)
