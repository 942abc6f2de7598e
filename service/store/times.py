"""Format times of the database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload


@overload
def format_rfc3339(seconds: float) -> str: ...
@overload
def format_rfc3339(seconds: float | None) -> str | None: ...
def format_rfc3339(seconds: float | None) -> str | None:
    """Format seconds since 1970 as RFC 3339 in UTC, in whole seconds; None stays None.

    >>> format_rfc3339(1_790_000_000.9), format_rfc3339(None)
    ('2026-09-21T14:13:20Z', None)
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
