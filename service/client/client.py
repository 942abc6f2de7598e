"""The client of a running service, for programs and for the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from service.client.connection import LONG_TIMEOUT, ServiceConnection, parse_answer
from service.client.failures import Retries
from service.client.jobs import BatchClient, CalibrationClient
from service.core.report import Report
from service.reporting.summaries import build_report_adapter


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
