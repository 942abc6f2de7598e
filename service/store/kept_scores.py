"""Interactive scores that somebody wants kept: the request as it was sent, and its report."""

from __future__ import annotations

import json
import secrets
import zlib
from dataclasses import dataclass

import sqlalchemy as sa

from service.errors import UnknownItemError
from service.store.access.audit import Actor, record
from service.store.database import Database
from service.store.labelling.drafts import ScoreDraft
from service.store.labelling.items import insert_items, name_score
from service.store.labelling.labels import count_labels
from service.store.tables import SCORES
from service.store.times import format_rfc3339


@dataclass(frozen=True, slots=True)
class KeptScore:
    """A score that was kept, without its trace and report."""

    id: str
    created_at: str
    rubric: str
    """`id@version`."""
    verdict: str
    score: float | None
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class KeptScoreList:
    """Kept scores, newest first. `next`: what to ask for as `after` to go on; null at the end."""

    data: tuple[KeptScore, ...]
    has_more: bool
    next: str | None


class KeptScores:
    """The kept scores in a database. All of it waits for the database, and so belongs into a thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def keep(self, tenant: str, draft: ScoreDraft) -> str:
        """Keeps a score with what may be labelled of it; its id."""
        with self.database.begin() as connection:
            now: float = connection.execute(sa.select(self.database.now())).scalar_one()
            name = f"score_{int(now * 1_000):012x}{secrets.token_hex(10)}"
            values = {
                "id": name,
                "tenant": tenant,
                "created_at": now,
                "rubric": draft.rubric,
                "verdict": draft.verdict,
                "score": draft.score,
                "tags": json.dumps(dict(draft.tags)),
                "request": zlib.compress(draft.request, 1),
                "report": zlib.compress(draft.report, 1),
            }
            connection.execute(SCORES.insert().values(values))
            insert_items(self.database, connection, tenant, [(name_score(name), item) for item in draft.items])
        return name

    def page(self, tenant: str, *, limit: int, after: str | None = None) -> KeptScoreList:
        """Kept scores, newest first: `limit` of those older than `after`, which need not exist any more."""
        names = ("id", "created_at", "rubric", "verdict", "score", "tags")
        chosen = sa.select(*[SCORES.c[name] for name in names]).where(SCORES.c.tenant == tenant)
        if after is not None:
            chosen = chosen.where(SCORES.c.id < after)
        with self.database.read() as connection:
            rows = connection.execute(chosen.order_by(SCORES.c.id.desc()).limit(limit + 1)).mappings().all()
        found = tuple([_build_score(row) for row in rows[:limit]])
        more = len(rows) > limit
        return KeptScoreList(found, more, found[-1].id if more else None)

    def read(self, tenant: str, name: str) -> tuple[bytes, bytes]:
        """Request and report as JSON. UnknownItemError where it is not there, or another tenant's."""
        chosen = sa.select(SCORES.c.request, SCORES.c.report).where(SCORES.c.id == name, SCORES.c.tenant == tenant)
        with self.database.read() as connection:
            row = connection.execute(chosen).one_or_none()
        if row is None:
            raise UnknownItemError("no kept score of that id")
        return zlib.decompress(row.request), zlib.decompress(row.report)

    def delete(self, tenant: str, name: str, *, by: Actor) -> None:
        """Deletes a score with its labels. UnknownItemError where it is not there, or another tenant's."""
        with self.database.begin() as connection:
            labels = count_labels(connection, kept=name)
            gone = SCORES.delete().where(SCORES.c.id == name, SCORES.c.tenant == tenant)
            if not connection.execute(gone).rowcount:
                raise UnknownItemError("no kept score of that id")
            record(
                connection,
                self.database.now(),
                by,
                "score.delete",
                target=name,
                tenant=tenant,
                detail={"labels": labels},
            )


def _build_score(row: sa.RowMapping) -> KeptScore:
    copied = {name: row[name] for name in ("id", "rubric", "verdict", "score")}
    return KeptScore(**copied, created_at=format_rfc3339(float(row["created_at"])), tags=json.loads(row["tags"]))
