"""Interactive scores that users keep: the request as it was sent, and its report."""

from __future__ import annotations

import json
import secrets
import zlib
from collections import Counter
from dataclasses import dataclass, fields
from typing import TypeAlias

import sqlalchemy as sa

from service.errors import UnknownItemError
from service.store.access.audit import Actor, record
from service.store.database import Database, Page, build_from_row, cut_page
from service.store.jobs.items import ALL_ITEMS, FailureGroup, ItemChoice, build_facts, count_rows, group_rows
from service.store.labelling.drafts import ScoreDraft
from service.store.labelling.items import insert_items, name_score, read_kept
from service.store.labelling.labels import count_labels
from service.store.tables import LABEL_ITEMS, SCORES
from service.store.times import format_rfc3339

MAX_TAGS = 5_000
"""Most kinds of tags with their outcomes that are counted."""


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


KeptScoreList: TypeAlias = Page[KeptScore, str]
"""Kept scores, newest first."""


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
                "tags": json.dumps(dict(draft.tags)),
                "request": zlib.compress(draft.request, 1),
                "report": zlib.compress(draft.report, 1),
                **build_facts({**draft.broken, "verdict": draft.verdict, "score": draft.score}),
            }
            connection.execute(SCORES.insert().values(values))
            insert_items(connection, tenant, [(name_score(name), item) for item in draft.items])
        return name

    def page(
        self, tenant: str, choice: ItemChoice = ALL_ITEMS, *, limit: int, after: str | None = None
    ) -> KeptScoreList:
        """List kept scores, newest first: `limit` of those older than `after`, which may have been deleted."""
        columns = [SCORES.c[one.name] for one in fields(KeptScore)]
        chosen = sa.select(*columns).where(SCORES.c.tenant == tenant, *choice.match(SCORES))
        if after is not None:
            chosen = chosen.where(SCORES.c.id < after)
        rows = self.database.read_rows(chosen.order_by(SCORES.c.id.desc()).limit(limit + 1))
        return cut_page(rows, limit, _build_score, lambda score: score.id)

    def count_outcomes(self, tenant: str) -> Counter[tuple[str, str, str]]:
        """Count the scores with each combination of verdict, stages and cluster."""
        return count_rows(self.database, SCORES, SCORES.c.tenant == tenant)

    def group_failures(self, tenant: str) -> tuple[FailureGroup, ...]:
        """Group scores by where they broke first, the largest group first."""
        return group_rows(self.database, SCORES, SCORES.c.tenant == tenant)

    def count_tags(self, tenant: str) -> dict[tuple[str, str], Counter[tuple[str, str, str]]]:
        """Count outcomes for each tag and value, over the `MAX_TAGS` commonest kinds of tags."""
        columns, n = [SCORES.c[name] for name in ("tags", "verdict", "stages", "cluster")], sa.func.count().label("n")
        grouped = sa.select(*columns, n).where(SCORES.c.tenant == tenant, SCORES.c.tags != "{}").group_by(*columns)
        found: dict[tuple[str, str], Counter[tuple[str, str, str]]] = {}
        for row in self.database.read_rows(grouped.order_by(n.desc(), *columns).limit(MAX_TAGS)):
            for tag in json.loads(row["tags"]).items():
                found.setdefault(tag, Counter())[row["verdict"], row["stages"], row["cluster"]] += row["n"]
        return found

    def read(self, tenant: str, name: str) -> tuple[bytes, bytes]:
        """Return request and report as JSON. Raises UnknownItemError if the score does not exist, or is another tenant's."""
        with self.database.read() as connection:
            return read_kept(connection, tenant, name)

    def delete(self, tenant: str, name: str, *, by: Actor) -> None:
        """Delete a score with its labels. Raises UnknownItemError if it does not exist, or is another tenant's."""
        with self.database.begin() as connection:
            labels = count_labels(connection, LABEL_ITEMS.c.kept == name)
            gone = SCORES.delete().where(SCORES.c.id == name, SCORES.c.tenant == tenant)
            if not connection.execute(gone).rowcount:
                raise UnknownItemError("no kept score of that id")
            record(connection, by, "score.delete", target=name, tenant=tenant, labels=labels)


def _build_score(row: sa.RowMapping) -> KeptScore:
    broken = {name: row[name] or None for name in ("stage", "finding", "tool")}
    return build_from_row(
        KeptScore, row, **broken, created_at=format_rfc3339(row["created_at"]), tags=json.loads(row["tags"])
    )
