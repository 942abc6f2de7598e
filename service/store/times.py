"""The database's clock, and how its times are written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, overload

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

DAY_S = 86_400


class Now(FunctionElement[float]):
    """The clock of the database, in seconds since 1970. A function, so that statements with it are compiled once."""

    inherit_cache = True
    type = sa.Double[float]()


@compiles(Now, "sqlite")
def _write_for_sqlite(*_: Any, **__: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Now, "postgresql")
def _write_for_postgres(*_: Any, **__: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


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
