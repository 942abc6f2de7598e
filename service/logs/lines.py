"""Logs: one JSON object a line, none over 8,000 bytes, without payloads at INFO and above."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Mapping

MAX_LINE_BYTES = 8_000
"""Longest line, without its end; log collectors split or drop longer ones."""

FIELD_CHARS = (4_000, 1_000, 250, 40)
"""Most characters of one field, tried in turn until the line is short enough."""

SAFE_INTEGER = 2**53
"""Every JSON reader reads integers up to this one exactly."""


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; `extra={"fields": {...}}` adds fields.

    Control characters are escaped, so they cannot break the line. An exception is written as its type and where it was
    raised: its message may quote a payload or a key, and is left out unless `with_messages`.
    """

    def __init__(self, *, with_messages: bool = False) -> None:
        super().__init__()
        self._with_messages = with_messages

    def format(self, record: logging.LogRecord) -> str:
        """Format the line."""
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
        head = f"{name}: {error}" if self._with_messages else name
        return "\n".join([head, *reversed(frames)])


def log_warnings(sentences: Iterable[str]) -> None:
    """Log what an operator should know before the service starts, a line each."""
    for sentence in sentences:
        logging.getLogger("callgrade").warning(sentence)


def fit_line(fields: Mapping[str, object]) -> str:
    """Format fields as one line of ASCII JSON, with texts cut until it fits.

    >>> fit_line({"message": "two\\nlines", "status": 200})
    '{"message": "two\\\\nlines", "status": 200}'
    """
    line = ""
    for max_chars in FIELD_CHARS:
        line = json.dumps({name: _simplify(value, max_chars) for name, value in fields.items()})
        if len(line) <= MAX_LINE_BYTES:
            return line
    return json.dumps({"level": "error", "message": "a log record with too many fields was dropped"})


def _simplify(value: object, max_chars: int) -> object:
    """Keep a scalar as it is, make anything else a text; a lone surrogate becomes a question mark."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < SAFE_INTEGER:  # false for NaN
        return value
    text = value[:max_chars] if isinstance(value, str) else repr(value)[:max_chars]
    return text.encode("utf-8", "replace").decode()


def configure(level: str) -> None:
    """Send all logs to standard error as JSON lines, from `level` up.

    The server's own access log is disabled: it would write query strings, and the application has its own.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(with_messages=level.upper() == "DEBUG"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True
