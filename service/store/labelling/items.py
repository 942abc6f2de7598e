"""The items to label: a trace under a criterion, its place, the judge's answer, and the trace itself."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from pydantic import JsonValue

from service.errors import UnknownItemError
from service.store.database import insert_new
from service.store.labelling.drafts import LabelItem
from service.store.tables import BATCHES, CHUNKS, LABEL_ITEMS, RESULTS, SCORES

BATCH_ITEM_ID = re.compile(r"(batch_[0-9a-f]{32})/(0|[1-9][0-9]{0,8})")
"""The id of a batch item: the batch and the position."""
WHOLE_TRACE = -1
"""The step of a label of the whole trace."""
SCORE_ID = re.compile(r"score_[0-9a-f]{32}")


class ItemPlace(NamedTuple):
    """Where an item is stored: in a batch, among the kept scores, or, if both are None, on its own."""

    item: str
    batch: str | None = None
    position: int | None = None
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class LabelSubject:
    """What an annotator looks at: a request as POST /v1/score takes it with its report, or an imported item's document."""

    request: dict[str, JsonValue] | None = None
    report: dict[str, JsonValue] | None = None
    document: dict[str, JsonValue] | None = None


def name_batch_item(batch: str, position: int) -> ItemPlace:
    """Return the place of a batch item."""
    return ItemPlace(f"{batch}/{position}", batch, position)


def name_score(score: str) -> ItemPlace:
    """Return the place of a kept score."""
    return ItemPlace(score, kept=score)


def insert_items(
    connection: sa.Connection,
    tenant: str,
    items: Iterable[tuple[ItemPlace, LabelItem]],
    *,
    documents: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> int:
    """Insert items, and return how many are new; existing ones stay as they are.

    `documents`: those of imported items, by item and criterion.
    """
    rows: list[dict[str, object]] = []
    for place, one in items:
        key = (place.item, one.criterion)
        own = {"tenant": tenant, "draw": compute_draw(*key), "document": documents.get(key)}
        rows.append({**place._asdict(), **asdict(one), **own})
    return insert_new(connection, LABEL_ITEMS, *rows)


def compute_draw(item: str, criterion: str) -> str:
    """Draw a pseudo-random place for an item: always the same, and chosen by nobody."""
    return sha256(f"label\0{item}\0{criterion}".encode()).hexdigest()[:16]


def match_item(tenant: str, item: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Match an item."""
    return LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.item == item, LABEL_ITEMS.c.criterion == criterion


def ensure_item(connection: sa.Connection, tenant: str, item: str, criterion: str) -> None:
    """Insert an item that somebody labels unasked. Raises UnknownItemError if it, or its criterion, does not exist."""
    if "\0" in item + criterion:  # no database accepts it
        raise _build_unknown_error()
    if connection.execute(sa.select(LABEL_ITEMS.c.item).where(*match_item(tenant, item, criterion))).one_or_none():
        return
    report = read_subject(connection, tenant, item, criterion).report or {}
    criteria = cast("list[dict[str, Any]]", report.get("criteria", []))
    stage = next((str(one["stage"]) for one in criteria if one["id"] == criterion), None)
    if stage is None:
        raise UnknownItemError(f"the report of that item has no criterion {criterion!r}")
    insert_items(connection, tenant, [(find_place(item), LabelItem(criterion, stage))])


def find_place(item: str) -> ItemPlace:
    """Return the place of an item, by its id."""
    if found := BATCH_ITEM_ID.fullmatch(item):
        return name_batch_item(found[1], int(found[2]))
    return name_score(item) if SCORE_ID.fullmatch(item) else ItemPlace(item)


def is_scored_here(connection: sa.Connection, tenant: str, item: str) -> bool:
    """Whether an id is that of a tenant's batch item or kept score: no imported document may replace these."""
    place = find_place(item)
    for table, name in ((BATCHES, place.batch), (SCORES, place.kept)):
        if name is not None:
            own = sa.select(table.c.id).where(table.c.id == name, table.c.tenant == tenant)
            return connection.execute(own).one_or_none() is not None
    return False


def read_subject(connection: sa.Connection, tenant: str, item: str, criterion: str) -> LabelSubject:
    """Read the subject of an item: what was scored here, else the document imported under that criterion.

    Raises UnknownItemError if it does not exist, or is another tenant's.
    """
    if "\0" in item:  # no database accepts it
        raise _build_unknown_error()
    place = find_place(item)
    if not is_scored_here(connection, tenant, item):
        own = sa.select(LABEL_ITEMS.c.document).where(*match_item(tenant, item, criterion))
        document = connection.execute(own).scalar_one_or_none()
        if document is None:
            raise _build_unknown_error()
        return LabelSubject(document=json.loads(document))
    if place.kept is not None:
        request, report = read_kept(connection, tenant, place.kept)
        return LabelSubject(json.loads(request), json.loads(report))
    batch, position = cast("tuple[str, int]", (place.batch, place.position))
    row = connection.execute(select_batch_item(batch, position)).one_or_none()
    if row is None:
        raise _build_unknown_error()
    line, report = unpack_line(row.payload, position - row.first), json.loads(row.line)["report"] if row.ok else None
    return LabelSubject(json.loads(line)["request"] if line else None, report)


def select_batch_item(batch: str, position: int) -> sa.Select[Any, Any, Any, Any]:
    """Select the outcome of a batch item, and its chunk; no row if the batch has no such item."""
    within = (CHUNKS.c.batch == batch, CHUNKS.c.first <= position, CHUNKS.c.first + CHUNKS.c.size > position)
    result = (RESULTS.c.batch == CHUNKS.c.batch) & (RESULTS.c.position == position)
    columns = (CHUNKS.c.payload, CHUNKS.c.first, RESULTS.c.line, RESULTS.c.ok)
    return sa.select(*columns).outerjoin_from(CHUNKS, RESULTS, result).where(*within)


def read_kept(connection: sa.Connection, tenant: str, score: str) -> tuple[bytes, bytes]:
    """Return the request and the report of a kept score as JSON.

    Raises UnknownItemError if it does not exist, or is another tenant's.
    """
    chosen = sa.select(SCORES.c.request, SCORES.c.report).where(SCORES.c.id == score, SCORES.c.tenant == tenant)
    row = connection.execute(chosen).one_or_none()
    if row is None:
        raise UnknownItemError("no kept score of that id")
    return zlib.decompress(row.request), zlib.decompress(row.report)


def unpack_line(payload: bytes | None, at: int) -> bytes | None:
    """Inflate the line of an item at a place in its chunk; None if it has expired or is damaged."""
    lines = unpack_lines(payload)
    return lines[at] if at < len(lines) else None


def unpack_lines(payload: bytes | None) -> list[bytes]:
    """Inflate the lines of a chunk's items; none if they have expired or are damaged."""
    try:
        return zlib.decompress(payload or b"").splitlines()
    except zlib.error:
        return []


def _build_unknown_error() -> UnknownItemError:
    return UnknownItemError("no item of that id")
