"""A job that is looked at until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from service.client.blocking import JobClient
from service.client.calls import AnyJob, J
from service.client.failures import ForeignError, RefusedError, UnreachableError
from service.errors import CallgradeError

PATIENCE = 300.0
"""Seconds without any answer after which a job is not watched any longer."""


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
