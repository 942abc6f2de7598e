"""Labels: what people say of items, one per annotator, item, criterion and step."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import sqlalchemy as sa
from pydantic import JsonValue

from service.errors import InputError, OthersLabelError, UnknownItemError
from service.store.access.audit import SERVICE, Actor, record
from service.store.database import Database, Page, build_from_row, cut_page, insert_new
from service.store.labelling.choice import check_source
from service.store.labelling.drafts import ImportCounts, LabelDraft, LabelItem, LabelSource, Word
from service.store.labelling.items import (
    WHOLE_TRACE,
    ItemPlace,
    LabelSubject,
    ensure_item,
    insert_items,
    is_scored_here,
    match_item,
    read_subject,
)
from service.store.tables import LABEL_ITEMS, LABEL_REVEALS, LABELS, SCORES
from service.store.times import DAY_S, format_rfc3339


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """An annotator's label of an item."""

    id: str
    item: str
    """`BATCH/POSITION`, the id of a kept score, or the id of an imported item."""
    criterion: str
    step: int | None
    """The step that was labelled, from 0; null: the whole trace."""
    annotator: str
    label: Word
    value: float | None
    """If the criterion's labels are graded, the label's place among them in [0, 1]."""
    failing_step: int | None
    """Where it fails: the step, from 0."""
    claim: str
    """Where it fails: the words of the answer."""
    note: str
    blind: bool
    """Whether it was given before the judge's answer was shown."""
    source: LabelSource
    made_at: str


@dataclass(frozen=True, slots=True)
class JudgeWord:
    """The judge's answer on an item: its own value, the value after its fit, and the least value that passes."""

    raw: float
    value: float | None
    threshold: float | None
    passed: bool | None
    """The report's decision; None if it left it open."""
    predictions: str
    """JSON: a list of judge answers, as calibration takes them."""


LabelList: TypeAlias = Page[HumanLabel, str]
"""Labels, newest first."""


class Labels:
    """The labels in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def put(self, tenant: str, draft: LabelDraft, *, by: Actor = SERVICE) -> HumanLabel:
        """Store a label, replacing the annotator's earlier one of the same; an identical label changes nothing.

        `check_source` decides its source. It is not blind if the judge's answer was shown to the annotator before, as it is
        after each label. Raises UnknownItemError if there is no such item.
        """
        with self.database.begin() as connection:
            ensure_item(connection, tenant, draft.item, draft.criterion)
            draft = replace(draft, source=check_source(connection, tenant, draft))
            answered = sa.select(LABEL_ITEMS.c.raw).where(*match_item(tenant, draft.item, draft.criterion))
            row = {"tenant": tenant, **{name: getattr(draft, name) for name in ("item", "criterion", "annotator")}}
            has_answer = connection.execute(answered).scalar_one() is not None
            seen = has_answer and not insert_new(connection, LABEL_REVEALS, row)
            [label], *_ = self._write(connection, tenant, [replace(draft, blind=draft.blind and not seen)], by=by)
            return label

    def read_judge(self, tenant: str, item: str, criterion: str) -> JudgeWord | None:
        """Return the judge's answer; None if no judge answered."""
        row = self.database.read_row(sa.select(LABEL_ITEMS).where(*match_item(tenant, item, criterion)))
        return None if row is None else build_judge_word(row)

    def read_subject(self, tenant: str, item: str, criterion: str) -> LabelSubject:
        """Return what to look at. Raises UnknownItemError if it does not exist, or is another tenant's."""
        with self.database.read() as connection:
            return read_subject(connection, tenant, item, criterion)

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
        """List labels, newest first: `limit` of those older than the label `after`, which may have been deleted."""
        filters = {"criterion": criterion, "annotator": annotator, "item": item}
        chosen = sa.select(LABELS).where(LABELS.c.tenant == tenant).order_by(LABELS.c.id.desc()).limit(limit + 1)
        chosen = chosen.where(*[LABELS.c[name] == value for name, value in filters.items() if value is not None])
        if after is not None:
            chosen = chosen.where(LABELS.c.id < after)
        return cut_page(self.database.read_rows(chosen), limit, _build_label, lambda label: label.id)

    def delete(self, tenant: str, name: str, *, by: Actor, annotator: str | None = None) -> HumanLabel:
        """Delete a label, and return it. Raises UnknownItemError if it does not exist, or is another tenant's.

        `annotator`: who must own it, else raises OthersLabelError. None: anybody.
        """
        with self.database.begin() as connection:
            deleted = LABELS.delete().where(LABELS.c.id == name, LABELS.c.tenant == tenant).returning(LABELS)
            row = connection.execute(deleted).mappings().one_or_none()
            if row is None:
                raise UnknownItemError("no label of that id")
            if annotator not in (None, row["annotator"]):
                raise OthersLabelError(f"it is a label of {row['annotator']}: only an admin takes it back")
            record(connection, by, "label.delete", target=name, tenant=tenant, **_describe_label(row))
            return _build_label(row)

    def import_items(
        self,
        tenant: str,
        items: Mapping[tuple[str, str], tuple[LabelItem, str]],
        drafts: Sequence[LabelDraft],
        *,
        steps: Mapping[tuple[str, str], tuple[str, int]] = MappingProxyType({}),
        by: Actor,
        annotator: str | None = None,
    ) -> ImportCounts:
        """Import items with their documents, by id and criterion, and labels; return how many are new.

        Existing items stay as they are, but get a judge's answer if they have none.

        What was scored here keeps its own trace: only the labels of such an item are imported. Raises InputError if it has no
        such criterion. `steps`: for items that are steps, the run and the place in it; if the run exists as an item, its step
        is labelled. `annotator`: whose labels may be replaced, besides imported ones; raises OthersLabelError for another's.
        """
        with self.database.begin() as connection:
            known: dict[tuple[str, str], tuple[str, int]] = {}
            for key, (run, step) in steps.items():
                own = sa.select(LABEL_ITEMS.c.item).where(*match_item(tenant, run, key[1]))
                if is_scored_here(connection, tenant, run) or connection.execute(own).one_or_none():
                    known[key] = run, step
            items = {key: item for key, item in items.items() if key not in known}
            real = {key for key in items if is_scored_here(connection, tenant, key[0])}
            for item, criterion in real | {(run, criterion) for (_, criterion), (run, _) in known.items()}:
                try:
                    ensure_item(connection, tenant, item, criterion)
                except UnknownItemError as error:
                    raise InputError.at("/criterion", f"{item!r} was scored here: {error}") from None
            documents = {key: document for key, (_, document) in items.items()}
            placed = {key: item for key, (item, _) in items.items() if key not in real}
            bare = [(ItemPlace(key[0]), LabelItem(one.criterion, one.stage)) for key, one in placed.items()]
            new_items = insert_items(connection, tenant, bare, documents=documents)
            predictions = sum(_answer_item(connection, tenant, key, one) for key, one in placed.items())
            moved: list[LabelDraft] = []
            for draft in drafts:
                run, step = known.get((draft.item, draft.criterion), (draft.item, draft.step))
                moved.append(replace(draft, item=run, step=step))
            _, new_labels, replaced = self._write(connection, tenant, moved, annotator=annotator)
            said = len(drafts)
            record(connection, by, "label.import", tenant=tenant, items=len(items), labels=said, replaced=replaced)
            return ImportCounts(new_items, new_labels, predictions)

    def list_criteria(self, tenant: str) -> tuple[str, ...]:
        """List the criteria that have something to label."""
        chosen = sa.select(LABEL_ITEMS.c.criterion).where(LABEL_ITEMS.c.tenant == tenant).distinct()
        return tuple(sorted(self.database.read_column(chosen)))

    def forget_old(self, *, days: float) -> None:
        """Delete what was kept or imported more than so many days ago and got no label since. Batches expire on their own."""
        early = self.database.now() - days * DAY_S
        fresh = LABELS.c.made_at >= early
        same = (LABELS.c.tenant == LABEL_ITEMS.c.tenant, LABELS.c.item == LABEL_ITEMS.c.item)
        late = sa.exists().where(*same, fresh).correlate(LABEL_ITEMS)
        of_score = (LABELS.c.tenant == SCORES.c.tenant, LABELS.c.item == SCORES.c.id)
        labelled = sa.exists().where(*of_score, fresh).correlate(SCORES)
        own = LABEL_ITEMS.c.batch.is_(None) & LABEL_ITEMS.c.kept.is_(None)
        imported = own & (LABEL_ITEMS.c.created_at < early) & ~late
        old = sa.select(SCORES.c.id).where(SCORES.c.created_at < early, ~labelled)
        with self.database.begin() as connection:
            labels = count_labels(connection, imported | LABEL_ITEMS.c.kept.in_(old))
            items = connection.execute(sa.delete(LABEL_ITEMS).where(imported)).rowcount
            scores = connection.execute(sa.delete(SCORES).where(SCORES.c.id.in_(old))).rowcount
            if items or scores:
                record(connection, SERVICE, "label.forget", items=items, scores=scores, labels=labels)

    def _write(
        self,
        connection: sa.Connection,
        tenant: str,
        drafts: Sequence[LabelDraft],
        *,
        by: Actor | None = None,
        annotator: str | None = None,
    ) -> tuple[list[HumanLabel], int, int]:
        """Write labels in order; an identical one stays as it was. Return them, how many are new, and how many replaced others.

        `by`: the actor in the audit log for each replaced label. `annotator`: as in `import_items`.
        """
        now: float = connection.execute(sa.select(self.database.now())).scalar_one()
        # Ids written together begin alike, and sort after all before, even of the same millisecond.
        last = connection.execute(sa.select(sa.func.max(LABELS.c.id)).where(LABELS.c.tenant == tenant)).scalar_one()
        after = 0 if last is None else int(last.removeprefix("label_")[:12], 16) + 1
        stem = f"label_{max(int(now * 1_000), after):012x}{secrets.token_hex(6)}"
        found: list[HumanLabel] = []
        new = replaced = 0
        for at, draft in enumerate(drafts):
            row = asdict(draft) | {"tenant": tenant, "decides": draft.source == "adjudication"}
            row["step"] = WHOLE_TRACE if draft.step is None else draft.step
            once = [LABELS.c[key] == row[key] for key in _ONCE]
            before = connection.execute(sa.select(LABELS).where(*once)).mappings().one_or_none()
            if before is not None and all(before[key] == row[key] for key in _SAID):
                found.append(_build_label(before))
                continue
            if before is not None:
                if annotator not in (None, before["annotator"]) and before["source"] != "import":
                    who, item = before["annotator"], before["item"]
                    raise OthersLabelError(f"{who} has labelled {item!r} here: only an admin replaces that")
                connection.execute(LABELS.delete().where(*once))
                replaced += 1
                if by is not None:
                    detail = _describe_label(before)
                    record(connection, by, "label.replace", target=before["id"], tenant=tenant, **detail)
            added = LABELS.insert().values(**row, id=f"{stem}{at:08x}", made_at=now).returning(LABELS)
            found.append(_build_label(connection.execute(added).mappings().one()))
            new += 1
        return found, new, replaced


_ONCE = ("tenant", "criterion", "item", "step", "annotator", "decides")
_SAID = ("label", "value", "failing_step", "claim", "note", "source")


def _answer_item(connection: sa.Connection, tenant: str, key: tuple[str, str], judged: LabelItem) -> int:
    """Give an item the judge's answer if it has none; return how many predictions are new."""
    if judged.raw is None:
        return 0
    answer = {name: getattr(judged, name) for name in ("raw", "threshold", "passed", "predictions")}
    unanswered = sa.update(LABEL_ITEMS).where(*match_item(tenant, *key), LABEL_ITEMS.c.raw.is_(None))
    new = connection.execute(unanswered.values(answer)).rowcount
    return new * len(json.loads(judged.predictions or "[]"))


def build_judge_word(row: sa.RowMapping) -> JudgeWord | None:
    """Build the judge's answer from a row of LABEL_ITEMS; None if no judge answered."""
    return None if row["raw"] is None else build_from_row(JudgeWord, row, predictions=row["predictions"] or "[]")


def count_labels(connection: sa.Connection, items: sa.ColumnElement[bool]) -> int:
    """Count the labels of the items that match."""
    same = [LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "item", "criterion")]
    counted = sa.select(sa.func.count()).select_from(LABELS).join(LABEL_ITEMS, sa.and_(*same)).where(items)
    return connection.execute(counted).scalar_one()


def list_labels(connection: sa.Connection, tenant: str, criterion: str) -> Iterable[HumanLabel]:
    """List all labels of a criterion, oldest first."""
    chosen = sa.select(LABELS).where(LABELS.c.tenant == tenant, LABELS.c.criterion == criterion)
    return [_build_label(row) for row in connection.execute(chosen.order_by(LABELS.c.id)).mappings()]


def _describe_label(row: sa.RowMapping) -> dict[str, JsonValue]:
    return {name: row[name] for name in ("item", "criterion", "annotator", "label", "source")}


def _build_label(row: sa.RowMapping) -> HumanLabel:
    step = None if row["step"] == WHOLE_TRACE else row["step"]
    return build_from_row(HumanLabel, row, step=step, made_at=format_rfc3339(row["made_at"]))
