"""Watch a job until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from service.client.blocking import JobClient
from service.client.calls import AnyJob, J
from service.client.failures import ForeignError, RefusedError, UnreachableError
from service.errors import CallgradeError

PATIENCE_S = 300.0
"""Seconds without any answer after which watching ends."""


def watch_job(
    client: JobClient[J],
    name: str,
    *,
    patience: float = PATIENCE_S,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    on_disconnect: Callable[[CallgradeError], object] = lambda _: None,
) -> Iterator[J]:
    """Yield a job whenever it changes, until it has ended.

    Reconnects if a connection breaks; polls if there are no events. UnreachableError if nobody answers at first, or for
    `patience` seconds; `on_disconnect` is called when such a time begins.
    """
    job: J | None = None
    answered_at, wait, streams = now(), 1.0, True
    while not _is_over(job):
        try:
            for job in _read_until_break(client.events(name)) if streams else ():
                answered_at, wait = now(), 1.0
                yield job
        except (RefusedError, ForeignError):
            streams = False  # something in between blocks events; the next request shows any other refusal
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
                on_disconnect(error)
        sleep(wait)
        wait = min(10.0, wait * 2)


def _read_until_break(jobs: Iterator[J]) -> Iterator[J]:
    with suppress(UnreachableError):
        yield from jobs


def _is_over(job: AnyJob | None) -> bool:
    return job is not None and job.ended
