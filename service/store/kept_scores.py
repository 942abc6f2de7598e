"""Interactive scores that users keep: the request as it was sent, and its report."""

from __future__ import annotations

import json
import secrets
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from service.errors import UnknownItemError
from service.store.access.audit import Actor, record
from service.store.database import Database
from service.store.jobs.items import ALL_ITEMS, FailureGroup, ItemChoice, count_rows, group_rows, shorten_all
from service.store.labelling.drafts import ScoreDraft
from service.store.labelling.items import insert_items, name_score
from service.store.labelling.labels import count_labels
from service.store.tables import SCORES
from service.store.times import format_rfc3339

MAX_TAGS = 5_000
"""Most kinds of tags with their outcomes that are counted."""
_LISTED_COLUMNS = ("id", "created_at", "rubric", "verdict", "score", "stage", "finding", "tool", "tags")


@dataclass(frozen=True, slots=True)
class KeptScore:
    """A kept score, without its trace and report."""

    id: str
    created_at: str
    rubric: str
    """`id@version`."""
    verdict: str
    score: float | None
    stage: str | None
    """Where it broke first, like `finding` and `tool`; null if it did not, or if that is unknown."""
    finding: str | None
    tool: str | None
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class KeptScoreList:
    """Kept scores, newest first. `next`: the `after` of the next page; null at the end."""

    data: tuple[KeptScore, ...]
    has_more: bool
    next: str | None


class KeptScores:
    """The kept scores in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def keep(self, tenant: str, draft: ScoreDraft) -> str:
        """Store a score, with what people may label of it; return its id."""
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
                "stages": draft.broken.get("stages", ""),
                **shorten_all(draft.broken),
            }
            connection.execute(SCORES.insert().values(values))
            insert_items(self.database, connection, tenant, [(name_score(name), item) for item in draft.items])
        return name

    def page(
        self, tenant: str, choice: ItemChoice = ALL_ITEMS, *, limit: int, after: str | None = None
    ) -> KeptScoreList:
        """List kept scores, newest first: `limit` of those older than `after`, which may have been deleted."""
        chosen = sa.select(*[SCORES.c[name] for name in _LISTED_COLUMNS]).where(
            SCORES.c.tenant == tenant, *choice.match_in(SCORES)
        )
        if after is not None:
            chosen = chosen.where(SCORES.c.id < after)
        with self.database.read() as connection:
            rows = connection.execute(chosen.order_by(SCORES.c.id.desc()).limit(limit + 1)).mappings().all()
        found = tuple([_build_score(row) for row in rows[:limit]])
        more = len(rows) > limit
        return KeptScoreList(found, more, found[-1].id if more else None)

    def count_outcomes(self, tenant: str) -> Counter[tuple[str, str, str]]:
        """Count the scores with each combination of verdict, stages and cluster."""
        return count_rows(self.database, SCORES, SCORES.c.tenant == tenant)

    def group_failures(self, tenant: str) -> tuple[FailureGroup, ...]:
        """Group scores by where they broke first, the largest group first."""
        return group_rows(self.database, SCORES, SCORES.c.tenant == tenant)

    def count_tags(self, tenant: str) -> dict[tuple[str, str], Counter[tuple[str, str, str]]]:
        """Count outcomes for each tag and value, over the `MAX_TAGS` commonest kinds of tags."""
        columns, count = (
            [SCORES.c[name] for name in ("tags", "verdict", "stages", "cluster")],
            sa.func.count().label("n"),
        )
        grouped = sa.select(*columns, count).where(SCORES.c.tenant == tenant, SCORES.c.tags != "{}").group_by(*columns)
        found: dict[tuple[str, str], Counter[tuple[str, str, str]]] = {}
        with self.database.read() as connection:
            for row in connection.execute(grouped.order_by(count.desc(), *columns).limit(MAX_TAGS)).mappings():
                for tag in json.loads(row["tags"]).items():
                    found.setdefault(tag, Counter())[row["verdict"], row["stages"], row["cluster"]] += row["n"]
        return found

    def read(self, tenant: str, name: str) -> tuple[bytes, bytes]:
        """Return request and report as JSON. Raises UnknownItemError if the score does not exist, or is another tenant's."""
        chosen = sa.select(SCORES.c.request, SCORES.c.report).where(SCORES.c.id == name, SCORES.c.tenant == tenant)
        with self.database.read() as connection:
            row = connection.execute(chosen).one_or_none()
        if row is None:
            raise UnknownItemError("no kept score of that id")
        return zlib.decompress(row.request), zlib.decompress(row.report)

    def delete(self, tenant: str, name: str, *, by: Actor) -> None:
        """Delete a score with its labels. Raises UnknownItemError if it does not exist, or is another tenant's."""
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
    copied: dict[str, Any] = {name: row[name] for name in ("id", "rubric", "verdict", "score")}
    broken: dict[str, Any] = {name: row[name] or None for name in ("stage", "finding", "tool")}
    return KeptScore(
        **copied, **broken, created_at=format_rfc3339(float(row["created_at"])), tags=json.loads(row["tags"])
    )
