"""Labels: what people say of items, one per annotator, item, criterion and step."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from pydantic import JsonValue

from service.errors import InputError, OthersLabelError, UnknownItemError
from service.store.access.audit import SERVICE, Actor, record
from service.store.access.keyed import claim
from service.store.database import Database
from service.store.labelling.drafts import LabelDraft, LabelItem, LabelSource, Word
from service.store.labelling.draws import check_source
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
from service.store.times import format_rfc3339

DAY_S = 86_400.0
NO_STEPS: Mapping[tuple[str, str], tuple[str, int]] = MappingProxyType({})


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
    """If the criterion's menu is graded, the label's place on it in [0, 1]."""
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


@dataclass(frozen=True, slots=True)
class LabelList:
    """Labels, newest first. `next`: the `after` of the next page; null at the end."""

    data: tuple[HumanLabel, ...]
    has_more: bool
    next: str | None


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
            ensure_item(self.database, connection, tenant, draft.item, draft.criterion)
            draft = replace(draft, source=check_source(connection, tenant, draft))
            seen = not claim_reveal(self.database, connection, tenant, draft)
            (name,) = write_labels(self.database, connection, tenant, [draft], seen=seen, by=by).names
            return _build_label(connection.execute(sa.select(LABELS).where(LABELS.c.id == name)).mappings().one())

    def read_judge(self, tenant: str, item: str, criterion: str) -> JudgeWord | None:
        """Return the judge's answer; None if no judge answered."""
        with self.database.read() as connection:
            chosen = sa.select(LABEL_ITEMS).where(*match_item(tenant, item, criterion))
            row = connection.execute(chosen).mappings().one_or_none()
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
        chosen = sa.select(LABELS).where(LABELS.c.tenant == tenant)
        chosen = chosen.where(*[LABELS.c[name] == value for name, value in filters.items() if value is not None])
        if after is not None:
            chosen = chosen.where(LABELS.c.id < after)
        with self.database.read() as connection:
            rows = connection.execute(chosen.order_by(LABELS.c.id.desc()).limit(limit + 1)).mappings().all()
        found = tuple([_build_label(row) for row in rows[:limit]])
        more = len(rows) > limit
        return LabelList(found, more, found[-1].id if more else None)

    def delete(self, tenant: str, name: str, *, by: Actor, annotator: str | None = None) -> HumanLabel:
        """Delete a label, and return it. Raises UnknownItemError if it does not exist, or is another tenant's.

        `annotator`: who must own it, else raises OthersLabelError. None: anybody.
        """
        with self.database.begin() as connection:
            chosen = LABELS.c.id == name, LABELS.c.tenant == tenant
            row = connection.execute(sa.select(LABELS).where(*chosen)).mappings().one_or_none()
            if row is None:
                raise UnknownItemError("no label of that id")
            if annotator not in (None, row["annotator"]):
                raise OthersLabelError(f"it is a label of {row['annotator']}: only an admin takes it back")
            connection.execute(LABELS.delete().where(*chosen))
            now, detail = self.database.now(), _describe_label(row)
            record(connection, now, by, "label.delete", target=name, tenant=tenant, detail=detail)
            return _build_label(row)

    def import_items(
        self,
        tenant: str,
        items: Mapping[tuple[str, str], tuple[LabelItem, str]],
        drafts: Sequence[LabelDraft],
        *,
        steps: Mapping[tuple[str, str], tuple[str, int]] = NO_STEPS,
        by: Actor,
        annotator: str | None = None,
    ) -> None:
        """Import items with their documents, by id and criterion, and labels. Existing items stay as they are.

        What was scored here keeps its own trace: only the labels of such an item are imported. Raises InputError if it has no
        such criterion. `steps`: for items that are steps, the run and the place in it; if the run exists as an item, its step
        is labelled. `annotator`: whose labels may be replaced, besides imported ones; raises OthersLabelError for another's.
        """
        documents = {key: document for key, (_, document) in items.items()}
        with self.database.begin() as connection:
            known = {key: place for key, place in steps.items() if self._is_item(connection, tenant, place[0], key[1])}
            items = {key: item for key, item in items.items() if key not in known}
            drafts = [_place_step(draft, known.get((draft.item, draft.criterion))) for draft in drafts]
            real = {key for key in items if is_scored_here(connection, tenant, key[0])}
            real |= {(run, criterion) for (_, criterion), (run, _) in known.items()}
            for item, criterion in real:
                self._ensure_real(connection, tenant, item, criterion)
            placed = [(ItemPlace(key[0]), item) for key, (item, _) in items.items() if key not in real]
            insert_items(self.database, connection, tenant, placed, documents=documents)
            written = write_labels(self.database, connection, tenant, drafts, annotator=annotator)
            detail = {"items": len(items), "labels": len(drafts), "replaced": written.replaced}
            record(connection, self.database.now(), by, "label.import", tenant=tenant, detail=detail)

    def _is_item(self, connection: sa.Connection, tenant: str, item: str, criterion: str) -> bool:
        own = sa.select(LABEL_ITEMS.c.item).where(*match_item(tenant, item, criterion))
        return is_scored_here(connection, tenant, item) or connection.execute(own).one_or_none() is not None

    def _ensure_real(self, connection: sa.Connection, tenant: str, item: str, criterion: str) -> None:
        try:
            ensure_item(self.database, connection, tenant, item, criterion)
        except UnknownItemError as error:
            raise InputError.at("/criterion", f"{item!r} was scored here: {error}") from None

    def list_criteria(self, tenant: str) -> tuple[str, ...]:
        """List the criteria that have something to label."""
        chosen = sa.select(LABEL_ITEMS.c.criterion).where(LABEL_ITEMS.c.tenant == tenant).distinct()
        with self.database.read() as connection:
            return tuple(sorted(connection.execute(chosen).scalars()))

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
            labels = _count_labels(connection, imported) + _count_labels(connection, LABEL_ITEMS.c.kept.in_(old))
            items = connection.execute(sa.delete(LABEL_ITEMS).where(imported)).rowcount
            scores = connection.execute(sa.delete(SCORES).where(SCORES.c.id.in_(old))).rowcount
            if items or scores:
                detail = {"items": items, "scores": scores, "labels": labels}
                record(connection, self.database.now(), SERVICE, "label.forget", detail=detail)


def build_judge_word(row: sa.RowMapping) -> JudgeWord | None:
    """Build the judge's answer from a row of LABEL_ITEMS; None if no judge answered."""
    if row["raw"] is None:
        return None
    return JudgeWord(row["raw"], row["value"], row["threshold"], row["passed"], row["predictions"] or "[]")


def count_labels(connection: sa.Connection, *, batch: str | None = None, kept: str | None = None) -> int:
    """Count the labels of a batch, or of a kept score."""
    own = LABEL_ITEMS.c.kept == kept if batch is None else LABEL_ITEMS.c.batch == batch
    return _count_labels(connection, own)


def _count_labels(connection: sa.Connection, own: sa.ColumnElement[bool]) -> int:
    same = [LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "item", "criterion")]
    counted = sa.select(sa.func.count()).select_from(LABELS).join(LABEL_ITEMS, sa.and_(*same)).where(own)
    return connection.execute(counted).scalar_one()


def adopt_labels(connection: sa.Connection, before: str, tenant: str) -> None:
    """Move everything to label, with its labels, from one tenant to another, which has nothing yet."""
    names = [one.name for one in LABEL_ITEMS.c]
    copied = [sa.literal(tenant) if name == "tenant" else LABEL_ITEMS.c[name] for name in names]
    connection.execute(
        LABEL_ITEMS.insert().from_select(names, sa.select(*copied).where(LABEL_ITEMS.c.tenant == before))
    )
    for table in (LABELS, LABEL_REVEALS, SCORES):
        connection.execute(table.update().where(table.c.tenant == before).values(tenant=tenant))
    connection.execute(LABEL_ITEMS.delete().where(LABEL_ITEMS.c.tenant == before))


def claim_reveal(database: Database, connection: sa.Connection, tenant: str, draft: LabelDraft) -> bool:
    """Record that the judge's answer is shown to an annotator, as after each label; return whether this is the first time."""
    word = sa.select(LABEL_ITEMS.c.raw).where(*match_item(tenant, draft.item, draft.criterion))
    if connection.execute(word).scalar_one() is None:
        return True
    row = {"tenant": tenant, "item": draft.item, "criterion": draft.criterion, "annotator": draft.annotator}
    return claim(database, connection, LABEL_REVEALS, row)


class WrittenLabels(NamedTuple):
    """The ids of labels, in order, and how many replaced others."""

    names: list[str]
    replaced: int


def write_labels(  # noqa: PLR0913 (each is needed by somebody)
    database: Database,
    connection: sa.Connection,
    tenant: str,
    drafts: Sequence[LabelDraft],
    *,
    seen: bool = False,
    by: Actor | None = None,
    annotator: str | None = None,
) -> WrittenLabels:
    """Write labels in order; an identical one stays as it was.

    `seen`: none of them is blind. `by`: the actor in the audit log for each replaced label. `annotator`: as in `import_items`.
    """
    now: float = connection.execute(sa.select(database.now())).scalar_one()
    stem = _make_stem(connection, tenant, now)
    rows = [_build_values(draft) | {"tenant": tenant, "made_at": now} for draft in drafts]
    names: list[str] = []
    replaced = 0
    for at, row in enumerate(rows):
        once = [LABELS.c[key] == row[key] for key in _ONCE]
        before = connection.execute(sa.select(LABELS).where(*once)).mappings().one_or_none()
        if before is not None and all(before[key] == row[key] for key in _SAID):
            names.append(before["id"])
            continue
        if before is not None:
            _check_whose(before, annotator)
            connection.execute(LABELS.delete().where(*once))
            replaced += 1
            if by is not None:
                detail = _describe_label(before)
                record(
                    connection, database.now(), by, "label.replace", target=before["id"], tenant=tenant, detail=detail
                )
        names.append(f"{stem}{at:08x}")
        values = {**row, "id": names[-1], "blind": row["blind"] and not seen}
        connection.execute(LABELS.insert().values(values))
    return WrittenLabels(names, replaced)


def _make_stem(connection: sa.Connection, tenant: str, now: float) -> str:
    """Make the common beginning of ids of labels written together: it sorts after all before, even of the same millisecond."""
    last = connection.execute(sa.select(sa.func.max(LABELS.c.id)).where(LABELS.c.tenant == tenant)).scalar_one()
    after = 0 if last is None else int(last.removeprefix("label_")[:12], 16) + 1
    return f"label_{max(int(now * 1_000), after):012x}{secrets.token_hex(6)}"


def _place_step(draft: LabelDraft, place: tuple[str, int] | None) -> LabelDraft:
    return draft if place is None else replace(draft, item=place[0], step=place[1])


def _check_whose(before: sa.RowMapping, annotator: str | None) -> None:
    if annotator not in (None, before["annotator"]) and before["source"] != "import":
        raise OthersLabelError(
            f"{before['annotator']} has labelled {before['item']!r} here: only an admin replaces that"
        )


def _describe_label(row: sa.RowMapping) -> dict[str, JsonValue]:
    return {name: row[name] for name in ("item", "criterion", "annotator", "label", "source")}


_ONCE = ("tenant", "criterion", "item", "step", "annotator", "decides")
_SAID = ("label", "value", "failing_step", "claim", "note", "source")


def _build_values(draft: LabelDraft) -> dict[str, object]:
    step = WHOLE_TRACE if draft.step is None else draft.step
    return {**asdict(draft), "step": step, "decides": draft.source == "adjudication"}


def _build_label(row: sa.RowMapping) -> HumanLabel:
    copied: dict[str, Any] = {name: row[name] for name in _AS_STORED}
    step = cast("int", row["step"])
    return HumanLabel(
        **copied, step=None if step == WHOLE_TRACE else step, made_at=format_rfc3339(cast("float", row["made_at"]))
    )


_AS_STORED = (
    *("id", "item", "criterion", "annotator", "label", "value"),
    *("failing_step", "claim", "note", "blind", "source"),
)


def read_labels_of(connection: sa.Connection, tenant: str, criterion: str) -> Iterable[HumanLabel]:
    """Read all labels of a criterion, oldest first."""
    chosen = sa.select(LABELS).where(LABELS.c.tenant == tenant, LABELS.c.criterion == criterion)
    return [_build_label(row) for row in connection.execute(chosen.order_by(LABELS.c.id)).mappings()]
