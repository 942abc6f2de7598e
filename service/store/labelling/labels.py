"""Labels: what people said of items, once for each annotator, item, criterion and step."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import sqlalchemy as sa

from service.errors import UnknownItemError
from service.store.audit import Actor, record
from service.store.database import Database
from service.store.labelling.drafts import LabelDraft, LabelItem, LabelSource, Word
from service.store.labelling.items import (
    ItemPlace,
    LabelSubject,
    ensure_item,
    insert_items,
    match_item,
    read_subject,
)
from service.store.tables import LABEL_ITEMS, LABELS, SCORES
from service.store.times import format_rfc3339

WHOLE = -1
"""The step of a label of the whole trace."""
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """What an annotator said of an item."""

    id: str
    item: str
    """`BATCH/POSITION`, the id of a kept score, or the id of an imported item."""
    criterion: str
    step: int | None
    """The step that was labelled, from 0; null: the whole trace."""
    annotator: str
    label: Word
    value: float | None
    """Where the menu of the criterion is graded, the label's place on it in [0, 1]."""
    failing_step: int | None
    """Where it fails: the step, from 0."""
    claim: str
    """Where it fails: the words of the answer."""
    note: str
    blind: bool
    """Whether it was given before the judge's word was shown."""
    source: LabelSource
    made_at: str


@dataclass(frozen=True, slots=True)
class JudgeWord:
    """What the judge said of an item: its own value, what its fit made of that, and the least value that passes."""

    raw: float
    value: float | None
    threshold: float | None
    predictions: str
    """JSON: a list of them, as calibration takes them."""


@dataclass(frozen=True, slots=True)
class LabelList:
    """Labels, newest first. `next`: what to ask for as `after` to go on; null at the end."""

    data: tuple[HumanLabel, ...]
    has_more: bool
    next: str | None


class Labels:
    """The labels in a database. All of it waits for the database, and so belongs into a thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def put(self, tenant: str, draft: LabelDraft) -> HumanLabel:
        """Keeps a label, in place of what the annotator said of the same before. UnknownItemError where there is no such item."""
        with self.database.begin() as connection:
            ensure_item(self.database, connection, tenant, draft.item, draft.criterion)
            (name,) = write_labels(self.database, connection, tenant, [draft])
            return _build_label(connection.execute(sa.select(LABELS).where(LABELS.c.id == name)).mappings().one())

    def read_judge(self, tenant: str, item: str, criterion: str) -> JudgeWord | None:
        """What the judge said; None where none did."""
        with self.database.read() as connection:
            chosen = sa.select(LABEL_ITEMS).where(*match_item(tenant, item, criterion))
            row = connection.execute(chosen).mappings().one_or_none()
        return None if row is None else build_judge_word(row)

    def read_subject(self, tenant: str, item: str) -> LabelSubject:
        """What there is to look at. UnknownItemError where it is not there, or another tenant's."""
        with self.database.read() as connection:
            return read_subject(connection, tenant, item)

    def page(
        self,
        tenant: str,
        *,
        limit: int,
        after: str | None = None,
        criterion: str | None = None,
        annotator: str | None = None,
        item: str | None = None,
    ) -> LabelList:
        """Labels, newest first: `limit` of those older than the label `after`, which need not exist any more."""
        asked = {"criterion": criterion, "annotator": annotator, "item": item}
        chosen = sa.select(LABELS).where(LABELS.c.tenant == tenant)
        chosen = chosen.where(*[LABELS.c[name] == value for name, value in asked.items() if value is not None])
        if after is not None:
            chosen = chosen.where(LABELS.c.id < after)
        with self.database.read() as connection:
            rows = connection.execute(chosen.order_by(LABELS.c.id.desc()).limit(limit + 1)).mappings().all()
        found = tuple([_build_label(row) for row in rows[:limit]])
        more = len(rows) > limit
        return LabelList(found, more, found[-1].id if more else None)

    def delete(self, tenant: str, name: str, *, by: Actor) -> HumanLabel:
        """Takes a label back; what it was. UnknownItemError where it is not there, or another tenant's."""
        with self.database.begin() as connection:
            chosen = LABELS.c.id == name, LABELS.c.tenant == tenant
            row = connection.execute(sa.select(LABELS).where(*chosen)).mappings().one_or_none()
            if row is None:
                raise UnknownItemError("no label of that id")
            connection.execute(LABELS.delete().where(*chosen))
            now, told = self.database.now(), {"item": row["item"], "criterion": row["criterion"]}
            record(connection, now, by, "label.delete", target=name, tenant=tenant, detail=told)
            return _build_label(row)

    def take_in(
        self,
        tenant: str,
        items: Mapping[tuple[str, str], tuple[LabelItem, str]],
        drafts: Sequence[LabelDraft],
        *,
        by: Actor,
    ) -> None:
        """Takes in items with their documents, by id and criterion, and labels. Items that are there stay as they are."""
        documents = {key: document for key, (_, document) in items.items()}
        placed = [(ItemPlace(key[0]), item) for key, (item, _) in items.items()]
        with self.database.begin() as connection:
            insert_items(self.database, connection, tenant, placed, documents=documents)
            write_labels(self.database, connection, tenant, drafts)
            told = {"items": len(items), "labels": len(drafts)}
            record(connection, self.database.now(), by, "label.import", tenant=tenant, detail=told)

    def list_criteria(self, tenant: str) -> tuple[str, ...]:
        """The criteria that there is something to label of."""
        chosen = sa.select(LABEL_ITEMS.c.criterion).where(LABEL_ITEMS.c.tenant == tenant).distinct()
        with self.database.read() as connection:
            return tuple(sorted(connection.execute(chosen).scalars()))

    def forget_old(self, *, days: float) -> None:
        """Deletes what was kept or imported more than so many days ago and got no label since. Batches go by themselves."""
        early = self.database.now() - days * DAY_S
        late = sa.exists().where(
            LABELS.c.tenant == LABEL_ITEMS.c.tenant, LABELS.c.item == LABEL_ITEMS.c.item, LABELS.c.made_at >= early
        )
        own = LABEL_ITEMS.c.batch.is_(None) & LABEL_ITEMS.c.kept.is_(None)
        labelled = sa.exists().where(
            LABELS.c.tenant == SCORES.c.tenant, LABELS.c.item == SCORES.c.id, LABELS.c.made_at >= early
        )
        with self.database.begin() as connection:
            connection.execute(sa.delete(LABEL_ITEMS).where(own, LABEL_ITEMS.c.created_at < early, ~late))
            connection.execute(sa.delete(SCORES).where(SCORES.c.created_at < early, ~labelled))


def build_judge_word(row: sa.RowMapping) -> JudgeWord | None:
    """What the judge said of the item in a row of LABEL_ITEMS; None where none did."""
    if row["raw"] is None:
        return None
    return JudgeWord(row["raw"], row["value"], row["threshold"], row["predictions"] or "[]")


def write_labels(database: Database, connection: sa.Connection, tenant: str, drafts: Sequence[LabelDraft]) -> list[str]:
    """Writes labels in their order; their ids."""
    now: float = connection.execute(sa.select(database.now())).scalar_one()
    stem = f"label_{int(now * 1_000):012x}{secrets.token_hex(6)}"
    rows = [_build_values(draft) | {"tenant": tenant, "made_at": now} for draft in drafts]
    names = [f"{stem}{at:08x}" for at in range(len(rows))]
    for row, name in zip(rows, names, strict=True):
        once = [LABELS.c[key] == row[key] for key in ("tenant", "criterion", "item", "step", "annotator")]
        connection.execute(LABELS.delete().where(*once))
        connection.execute(LABELS.insert().values(**row, id=name))
    return names


def _build_values(draft: LabelDraft) -> dict[str, object]:
    return {**asdict(draft), "step": WHOLE if draft.step is None else draft.step}


def _build_label(row: sa.RowMapping) -> HumanLabel:
    copied: dict[str, Any] = {name: row[name] for name in _AS_STORED}
    step = cast("int", row["step"])
    return HumanLabel(
        **copied, step=None if step == WHOLE else step, made_at=format_rfc3339(cast("float", row["made_at"]))
    )


_AS_STORED = (
    *("id", "item", "criterion", "annotator", "label", "value"),
    *("failing_step", "claim", "note", "blind", "source"),
)


def read_labels_of(connection: sa.Connection, tenant: str, criterion: str) -> Iterable[HumanLabel]:
    """All labels of a criterion, first to last."""
    chosen = sa.select(LABELS).where(LABELS.c.tenant == tenant, LABELS.c.criterion == criterion)
    return [_build_label(row) for row in connection.execute(chosen.order_by(LABELS.c.id)).mappings()]
