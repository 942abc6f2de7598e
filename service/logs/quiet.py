"""Keep libraries quiet, and secrets out of what is said about their errors."""

from __future__ import annotations

import logging
import os
import time
from asyncio import CancelledError
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager


@contextmanager
def extend_environ(more: Mapping[str, str]) -> Generator[None]:
    """Set more environment variables, for what a library reads at import and accepts in no other way.

    They are removed afterwards, so that nothing else sees them, not even processes that we start.
    """
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def hush(names: Iterable[str]) -> None:
    """Remove the handlers of these loggers, and drop their records below a warning."""
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.WARNING)


def silence(names: Iterable[str]) -> None:
    """Remove the handlers of these loggers, and drop all their records."""
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.CRITICAL + 1)


class RateFilter(logging.Filter):
    """Lets a few records through in each period; the first of the next says how many it dropped."""

    def __init__(self, *, limit: int = 5, period: float = 10.0, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._limit = limit
        self._period = period
        self._now = now
        self._start = now()
        self._seen = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is among the first of its period."""
        now = self._now()
        if now - self._start >= self._period:
            missed, self._start, self._seen = self._seen - self._limit, now, 0
            if missed > 0:
                record.msg, record.args = f"{record.getMessage()} (and {missed} more records before)", None
        self._seen += 1
        return self._seen <= self._limit


def limit_rate(name: str) -> None:
    """Limit a logger to a few records in ten seconds: a database restart is not worth a hundred lines."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, RateFilter) for one in logger.filters):
        logger.addFilter(RateFilter())


def name_error_kind(error: Exception) -> str:
    """Name the kind of an error, or of its cause, if its text may contain an address with a password.

    >>> name_error_kind(TimeoutError())
    'TimeoutError'
    """
    cause = error.__cause__
    return type(error if cause is None or isinstance(cause, CancelledError) else cause).__name__
