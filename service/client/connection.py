"""One connection to a service: requests with retries, streamed answers, and every failure as an error of ours."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from random import random
from typing import Any, BinaryIO, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from service import __version__
from service.errors import CallgradeError
from service.problems import PROBLEM, ProblemDetails, build_details

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
"""Statuses after which the same request may succeed."""


class UnreachableError(CallgradeError):
    """No answer came, or only a part of one. `connected`: whether there was a connection."""

    retryable = True

    def __init__(self, message: str, *, connected: bool = True) -> None:
        self.connected = connected
        super().__init__(message)


class ForeignError(CallgradeError):
    """The answer does not come from callgrade."""

    def __init__(self) -> None:
        super().__init__("the answer does not come from callgrade")


class RefusedError(CallgradeError):
    """The service refused. `problem` is its problem document, `retry_after` the seconds it asks to wait."""

    def __init__(self, problem: ProblemDetails, *, retry_after: float | None = None) -> None:
        self.problem = problem
        self.retryable = problem.status in TRANSIENT_STATUSES or retry_after is not None
        self.retry_after = retry_after
        super().__init__(f"{problem.detail} ({problem.status})")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is tried, and the wait between: as the service says, else twice as long each time.

    `draw` returns a number from 0 to 1, so that clients that failed together do not come back together.
    """

    attempts: int = 4
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    draw: Callable[[], float] = random

    def find_wait(self, attempt: int, error: CallgradeError) -> float | None:
        """Return the seconds before the next attempt, after `attempt` of them; None if there is no next one.

        >>> find_wait = Retries(draw=lambda: 1.0).find_wait
        >>> find_wait(1, UnreachableError("")), find_wait(3, UnreachableError("")), find_wait(4, UnreachableError(""))
        (0.5, 2.0, None)
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        retry_after: float | None = getattr(error, "retry_after", None)
        if retry_after is not None:
            return retry_after if retry_after <= self.longest_wait_s else None
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
        return longest * (0.5 + 0.5 * self.draw())


T = TypeVar("T")

SHORT_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
LONG_TIMEOUT = httpx.Timeout(900.0, connect=10.0)
"""The service checks a large batch before it answers, and a judge takes its time."""
READ_BYTES = 2**18
"""Bytes that are sent at once."""


class ServiceConnection:
    """Sends requests to a service, and repeats them as its `retries` say."""

    def __init__(self, server: str, key: str | None, retries: Retries, sleep: Callable[[float], object]) -> None:
        self.server = server
        self.retries = retries
        self.sleep = sleep
        headers = {"user-agent": f"callgrade/{__version__}"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._http = httpx.Client(base_url=server, headers=headers, timeout=SHORT_TIMEOUT, verify=_get_tls())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(
        self, method: str, path: str, *, lines: BinaryIO | None = None, key: str = "", **more: Any
    ) -> httpx.Response:
        """Send a request and return its successful answer. UnreachableError or RefusedError.

        `lines`: gzipped JSON Lines, sent from their start; `key`: the Idempotency-Key; `more`: as httpx's `request`.
        """
        headers = {"content-type": "application/x-ndjson", "content-encoding": "gzip"} if lines is not None else {}
        if key:
            headers["idempotency-key"] = key
        attempt = 1
        while True:
            try:
                with translate_errors():
                    content = None if lines is None else _read_pieces(lines)
                    answer = self._http.request(method, path, content=content, headers=headers, **more)
                if answer.is_success:
                    return answer
                raise build_refusal(answer)
            except CallgradeError as error:
                wait = self.retries.find_wait(attempt, error)
                if wait is None:
                    raise
            self.sleep(wait)
            attempt += 1

    @contextmanager
    def stream(self, path: str, *, params: Mapping[str, str] | None = None) -> Generator[httpx.Response]:
        """Open an answer that is read as it arrives."""
        with translate_errors(), self._http.stream("GET", path, params=params) as answer:
            if not answer.is_success:
                answer.read()
                raise build_refusal(answer)
            yield answer


@contextmanager
def translate_errors() -> Generator[None]:
    """Turn httpx's errors into UnreachableError."""
    try:
        yield
    except httpx.HTTPError as error:
        connected = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise UnreachableError(str(error) or type(error).__name__, connected=connected) from None


def parse_answer(form: TypeAdapter[T], data: bytes) -> T:
    """Parse an answer; ForeignError if it is not of this type."""
    try:
        return form.validate_json(data)
    except ValidationError:
        raise ForeignError from None


def build_refusal(answer: httpx.Response) -> RefusedError:
    """Build the error of an unsuccessful answer; its body must be read. A proxy's own answer is described by its status."""
    problem: ProblemDetails
    try:
        problem = PROBLEM.validate_json(answer.content)
    except ValidationError:
        problem = build_details(answer.status_code, f"answered {answer.status_code} {answer.reason_phrase}".rstrip())
    return RefusedError(problem, retry_after=_read_wait(answer.headers.get("retry-after")))


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


def _read_pieces(body: BinaryIO) -> Iterator[bytes]:
    body.seek(0)
    while piece := body.read(READ_BYTES):
        yield piece


@cache
def _get_tls() -> ssl.SSLContext:
    """Build httpx's own TLS context once per process, because that takes longer than many a request."""
    return httpx.create_ssl_context()


def measure_age(answer: httpx.Response, created_at: str) -> float:
    """Return the seconds from `created_at` to this answer's request, by the service's own clock; 0 if it does not say."""
    date = answer.headers.get("date")
    if date is None:
        return 0.0
    answered = parsedate_to_datetime(date).astimezone(UTC)
    return (answered - datetime.fromisoformat(created_at)).total_seconds() - answer.elapsed.total_seconds()
