"""Keep libraries quiet: their environment variables and their log records."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from service.logs.redaction import Redactor


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


class RedactingFilter(logging.Filter):
    """Removes secrets from records, and exceptions, which quote them."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record; always True."""
        record.msg, record.args = self._redact(record.getMessage()), None
        record.exc_info = record.exc_text = record.stack_info = None
        return True


class WithholdingFilter(logging.Filter):
    """Drops records while `should_withhold` says so, e.g. because they would quote what a stranger sent."""

    def __init__(self, should_withhold: Callable[[], bool]) -> None:
        super().__init__()
        self._should_withhold = should_withhold

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 (logging's)
        """Whether the record may pass."""
        return not self._should_withhold()


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
