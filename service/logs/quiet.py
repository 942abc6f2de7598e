"""Keeping a talkative library to itself: its variables, its log records."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from service.logs.redaction import Redactor


@contextmanager
def extend_environ(more: Mapping[str, str]) -> Generator[None]:
    """The environment with some variables more, for what a library reads at import and takes no other way.

    They are gone afterwards: nothing else, and no process that we start, is to see them.
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
    """Takes away the handlers of these loggers, and all they say below a warning."""
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.WARNING)


class RedactingFilter(logging.Filter):
    """Takes secrets out of records, and the exceptions, which quote them."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True."""
        record.msg, record.args = self._redact(record.getMessage()), None
        record.exc_info = record.exc_text = record.stack_info = None
        return True


class WithholdingFilter(logging.Filter):
    """Keeps back records while `told` says so, say because they would quote what a stranger sent."""

    def __init__(self, told: Callable[[], bool]) -> None:
        super().__init__()
        self._told = told

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 (logging's)
        """Whether the record may go on."""
        return not self._told()


class RateFilter(logging.Filter):
    """Lets a few records through in each period, and says with the next one how many there were besides."""

    def __init__(self, *, most: int = 5, period: float = 10.0, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most = most
        self._period = period
        self._now = now
        self._start = now()
        self._seen = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is among the first of its period."""
        now = self._now()
        if now - self._start >= self._period:
            missed, self._start, self._seen = self._seen - self._most, now, 0
            if missed > 0:
                record.msg, record.args = f"{record.getMessage()} (and {missed} more records before)", None
        self._seen += 1
        return self._seen <= self._most


def thin(name: str) -> None:
    """Has a logger say no more than a few things in ten seconds: a database that restarts is worth no hundred lines."""
    logger = logging.getLogger(name)
    if not any(isinstance(one, RateFilter) for one in logger.filters):
        logger.addFilter(RateFilter())
