"""The audit log: who did what, when, and from where.

An act and its entry are one transaction: neither exists without the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import sqlalchemy as sa
from pydantic import JsonValue

from service.store.database import Database, Page, build_from_row, cut_page
from service.store.tables import AUDIT
from service.store.times import DAY_S, format_rfc3339

Act = Literal[
    "key.create",
    "key.rotate",
    "key.revoke",
    "batch.cancel",
    "batch.pause",
    "batch.resume",
    "batch.retry",
    "batch.delete",
    "calibration.cancel",
    "calibration.pause",
    "calibration.resume",
    "calibration.retry",
    "calibration.delete",
    "rubrics.change",
    "fits.change",
    "fit.install",
    "fit.rollback",
    "label.delete",
    "label.forget",
    "label.import",
    "label.replace",
    "score.delete",
    "session.create",
    "session.end",
]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, and from where: a key and the address it came from, or a machine's user and its name."""

    who: str
    origin: str


SERVICE = Actor("service", "")
"""The service itself, at startup."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One act. `target` is empty for files; `detail` holds what else the act has."""

    id: int
    at: str
    """RFC 3339 in UTC."""
    who: str
    """`key ID`, `user NAME` of a machine, `service`; `nobody` if no key was asked for."""
    origin: str
    """The address that the request came from, or the name of the machine."""
    act: Act
    tenant: str
    """The owner of the target; empty: nobody."""
    target: str
    """The id of the target."""
    detail: dict[str, JsonValue]


AuditLog: TypeAlias = Page[AuditEntry, int]
"""Entries, newest first."""


def record(
    connection: sa.Connection, actor: Actor, act: Act, *, target: str = "", tenant: str = "", **detail: JsonValue
) -> None:
    """Write an entry in the transaction of the act itself."""
    text = json.dumps(detail, separators=(",", ":"))
    values = {"who": actor.who, "origin": actor.origin, "act": act, "target": target, "tenant": tenant, "detail": text}
    connection.execute(AUDIT.insert().values(values))


class Audit:
    """The entries in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, *, limit: int, after: int | None = None, act: Act | None = None) -> AuditLog:
        """List entries, newest first: `limit` of those older than the entry `after`, which may have been deleted."""
        chosen = sa.select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit + 1)
        if after is not None:
            chosen = chosen.where(AUDIT.c.id < after)
        if act is not None:
            chosen = chosen.where(AUDIT.c.act == act)
        return cut_page(self._database.read_rows(chosen), limit, _build_entry, lambda entry: entry.id)

    def note_files(self, actor: Actor, act: Act, files: Mapping[str, str]) -> bool:
        """Record the current files, by name with their digests, unless the last entry of this act lists the same.

        Returns whether it was recorded. Having none is no news if there never were any.
        """
        named: dict[str, JsonValue] = dict(sorted(files.items()))
        with self._database.begin() as connection:
            last = sa.select(AUDIT.c.detail).where(AUDIT.c.act == act).order_by(AUDIT.c.id.desc()).limit(1)
            before = connection.execute(last).scalar_one_or_none() or '{"files":{}}'
            if json.loads(before) == {"files": named}:
                return False
            record(connection, actor, act, files=named)
            return True

    def forget_old(self, *, days: float) -> int:
        """Delete entries older than so many days; return how many."""
        return self._database.change(AUDIT.delete().where(AUDIT.c.at < self._database.now() - days * DAY_S))


def _build_entry(row: sa.RowMapping) -> AuditEntry:
    return build_from_row(AuditEntry, row, at=format_rfc3339(row["at"]), detail=json.loads(row["detail"]))
