"""Logs: one JSON object a line, none over 8,000 bytes, with no payload at INFO and above."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Mapping

MAX_LINE = 8_000
"""Bytes of one line, its end not counted; collectors split or drop longer ones."""

ROOMS = (4_000, 1_000, 250, 40)
"""Characters that one field may have, tried in turn until the line is short enough."""

SAFE_INTEGER = 2**53
"""Numbers up to here are numbers to every reader of JSON."""


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {...}}` adds fields.

    Control characters are escaped and so cannot break the line. An exception is written as its type and where it was raised:
    what it says may quote a payload or a key, and is left out unless `with_messages`.
    """

    def __init__(self, *, with_messages: bool = False) -> None:
        super().__init__()
        self._with_messages = with_messages

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            fields["exception"] = self._describe_exception(error)
        return fit_line(fields | getattr(record, "fields", {}))

    def _describe_exception(self, error: BaseException) -> str:
        frames = [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        said = f"{name}: {error}" if self._with_messages else name
        return "\n".join([said, *reversed(frames)])


def log_warnings(sentences: Iterable[str]) -> None:
    """What whoever runs the service should know before it begins, a line each."""
    for sentence in sentences:
        logging.getLogger("callgrade").warning(sentence)


def fit_line(fields: Mapping[str, object]) -> str:
    """The fields as one line of JSON in ASCII, with texts cut until it fits.

    >>> fit_line({"message": "two\\nlines", "status": 200})
    '{"message": "two\\\\nlines", "status": 200}'
    """
    line = ""
    for room in ROOMS:
        line = json.dumps({name: _simplify(value, room) for name, value in fields.items()})
        if len(line) <= MAX_LINE:
            return line
    return json.dumps({"level": "error", "message": "a log record with too many fields was dropped"})


def _simplify(value: object, room: int) -> object:
    """A scalar as it is, anything else as text; a lone surrogate becomes a question mark."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < SAFE_INTEGER:  # false for NaN
        return value
    text = value[:room] if isinstance(value, str) else repr(value)[:room]
    return text.encode("utf-8", "replace").decode()


def configure(level: str) -> None:
    """Sends all logs to standard error as JSON lines from `level` up.

    The server's own access log is closed: it would write query strings, and the application has one of its own.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(with_messages=level.upper() == "DEBUG"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True
