"""Logs: one JSON object a line, with no payload at INFO."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

MAX_LINE = 8_000


class JsonLines(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {...}}` adds fields. Control characters cannot break the line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:2_000],
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)[-4_000:]
        return json.dumps(fields, default=str)[:MAX_LINE]


def configure(level: str) -> None:
    """Sends all logs to standard error as JSON lines from `level` up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
