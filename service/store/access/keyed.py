"""What an Idempotency-Key stands for: the first request with it claims it, as a row in a table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.store.database import Database


def hash_key(key: str) -> str:
    """Hash a key for storage."""
    return hashlib.sha256(key.encode()).hexdigest()


def claim(database: Database, connection: sa.Connection, table: sa.Table, row: Mapping[str, object]) -> bool:
    """Insert the row unless its key exists; return whether it is ours. A second claimant waits until the first has decided."""
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    claimed = insert(table).values(dict(row)).on_conflict_do_nothing().returning(*table.primary_key.columns)
    return connection.execute(claimed).one_or_none() is not None
