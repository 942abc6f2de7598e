"""Keeping a talkative library to itself: its variables, its log records."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

from service.io.redaction import Redactor


@contextmanager
def environ(more: Mapping[str, str]) -> Generator[None]:
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


class Redacting(logging.Filter):
    """Takes secrets out of records, and the exceptions, which quote them."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True."""
        record.msg, record.args = self._redact(record.getMessage()), None
        record.exc_info = record.exc_text = record.stack_info = None
        return True
