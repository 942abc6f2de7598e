"""List and count the items of a batch: one short row each, written with its result.

Lists and counts read these rows and their indexes, never the results: a batch of 100,000 items is as quick as one of ten.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import JsonValue

from service.core.rubric import STAGES, Stage
from service.store.database import Database
from service.store.tables import CHUNKS, ITEMS, RESULTS

MAX_GROUPS = 200
"""Most groups of failures that are returned, the largest first."""

MAX_TEXT_CHARS = 160
"""Most characters of a text that is counted by: users choose the names of tools and groups, of any length."""

FAILED_STAGE = "f"
"""The letter of a stage that failed."""

ERROR_VERDICT = "error"
"""Stands in for the verdict of an item that could not be scored."""


class ItemFacts(NamedTuple):
    """The stored facts of one item. Empty text: there is none."""

    custom_id: str
    verdict: str
    stage: str = ""
    finding: str = ""
    tool: str = ""
    stages: str = ""
    """The state of each stage, one letter each."""
    score: float | None = None
    cluster: str = ""
    """Its tag `group`: items of one group are not independent."""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item of a batch in a list. `stage`, `finding` and `tool`: where it broke first; null where it did not."""

    index: int
    custom_id: str
    verdict: str
    """`error` if it could not be scored."""
    score: float | None
    stage: str | None
    finding: str | None
    tool: str | None


@dataclass(frozen=True, slots=True)
class ListedItems:
    """Items of a batch, in order. `next`: the `after` of the next page; null at the end."""

    data: tuple[ListedItem, ...]
    has_more: bool
    next: int | None


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The items that broke first at one stage, with one finding, at a call of one tool. Null: at no call."""

    stage: str
    finding: str
    tool: str | None
    count: int


@dataclass(frozen=True, slots=True)
class WholeItem:
    """One item of a batch: its request and its outcome. `report` and `error` are null until it is scored."""

    index: int
    custom_id: str
    request: JsonValue
    """As POST /v1/score takes it, with the batch's options filled in; null once it has expired."""
    report: JsonValue
    error: JsonValue
    previous: int | None
    """The index of the item before it in the same list; null for the first."""
    next: int | None


@dataclass(frozen=True, slots=True)
class ItemChoice:
    """A filter on items; None: any. An empty `tool` means no tool."""

    verdict: str | None = None
    stage: str | None = None
    finding: str | None = None
    tool: str | None = None
    failed: Stage | None = None
    """A stage that failed, even if another one broke before it."""

    def match(self, batch: str) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on the items of a batch."""
        return [ITEMS.c.batch == batch, *self.match_in(ITEMS)]

    def match_in(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on a table that has the same columns."""
        wanted_values = {"verdict": self.verdict, "stage": self.stage, "finding": self.finding, "tool": self.tool}
        found = [table.c[name] == value for name, value in wanted_values.items() if value is not None]
        if self.failed is not None:
            found.append(sa.func.substr(table.c.stages, STAGES.index(self.failed) + 1, 1) == FAILED_STAGE)
        return found


ALL_ITEMS = ItemChoice()

_LISTED = [ITEMS.c[name] for name in ("position", "custom_id", "verdict", "score", "stage", "finding", "tool")]


ITEM_COLUMNS = ("batch", "position", *ItemFacts._fields)
"""The columns of `build_item_row`."""


def build_item_row(batch: str, position: int, facts: ItemFacts) -> tuple[object, ...]:
    """Build the row of an item."""
    name, verdict, stage, finding, tool, stages, score, cluster = facts
    return (
        *(batch, position, name, verdict, shorten(stage), shorten(finding), shorten(tool)),
        *(stages, score, shorten(cluster)),
    )


def shorten_all(values: Mapping[str, str]) -> dict[str, str]:
    """Shorten those facts of an item that are counted by, so that an index takes them."""
    return {name: shorten(values.get(name, "")) for name in ("stage", "finding", "tool", "cluster")}


def list_items(
    database: Database, batch: str, choice: ItemChoice = ALL_ITEMS, *, limit: int, after: int | None = None
) -> ListedItems:
    """List at most `limit` of the chosen items, after the index `after`."""
    chosen = sa.select(*_LISTED).where(*choice.match(batch)).order_by(ITEMS.c.position).limit(limit + 1)
    if after is not None:
        chosen = chosen.where(ITEMS.c.position > after)
    with database.read() as connection:
        found = [_build_item(row) for row in connection.execute(chosen)]
    more = len(found) > limit
    return ListedItems(tuple(found[:limit]), more, found[limit - 1].index if more else None)


def count_items(database: Database, batch: str, choice: ItemChoice = ALL_ITEMS) -> int:
    """Count the chosen items among those that have an outcome."""
    with database.read() as connection:
        return connection.execute(
            sa.select(sa.func.count()).select_from(ITEMS).where(*choice.match(batch))
        ).scalar_one()


def count_outcomes(database: Database, batch: str) -> Counter[tuple[str, str, str]]:
    """Count the items with each combination of verdict, stages and cluster."""
    return count_rows(database, ITEMS, ITEMS.c.batch == batch)


def count_rows(database: Database, table: sa.Table, own: sa.ColumnElement[bool]) -> Counter[tuple[str, str, str]]:
    """Do the same for a table that has the same columns."""
    columns = [table.c.verdict, table.c.stages, table.c.cluster]
    counted = sa.select(*columns, sa.func.count().label("n")).where(own).group_by(*columns)
    with database.read() as connection:
        rows = connection.execute(counted).mappings()
        return Counter({(row["verdict"], row["stages"], row["cluster"]): row["n"] for row in rows})


def group_failures(database: Database, batch: str) -> tuple[FailureGroup, ...]:
    """Group items by where they broke first, the largest group first: at most `MAX_GROUPS`."""
    return group_rows(database, ITEMS, ITEMS.c.batch == batch)


def group_rows(database: Database, table: sa.Table, own: sa.ColumnElement[bool]) -> tuple[FailureGroup, ...]:
    """Do the same for a table that has the same columns."""
    columns, count = [table.c.stage, table.c.finding, table.c.tool], sa.func.count().label("n")
    grouped = sa.select(*columns, count).where(own, table.c.stage != "").group_by(*columns)
    with database.read() as connection:
        rows = connection.execute(grouped.order_by(count.desc(), *columns).limit(MAX_GROUPS)).mappings()
        return tuple([FailureGroup(row["stage"], row["finding"], row["tool"] or None, row["n"]) for row in rows])


def find_item(database: Database, batch: str, index: int, choice: ItemChoice = ALL_ITEMS) -> WholeItem | None:
    """Find a whole item, with its neighbours among the chosen ones; None if there is no such item."""
    within = (CHUNKS.c.batch == batch, CHUNKS.c.first <= index, CHUNKS.c.first + CHUNKS.c.size > index)
    line = sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch, RESULTS.c.position == index)
    with database.read() as connection:
        chunk = connection.execute(sa.select(CHUNKS.c.first, CHUNKS.c.payload).where(*within)).one_or_none()
        if chunk is None:
            return None
        outcome_line = connection.execute(line).scalar_one_or_none()
        previous, following = (_find_neighbour(connection, choice.match(batch), index, step) for step in (-1, 1))
    submitted = _read_sent(chunk.payload, index - chunk.first)
    outcome: Mapping[str, Any] = json.loads(outcome_line) if outcome_line is not None else {}
    name = outcome.get("custom_id") or submitted.get("custom_id") or f"item-{index}"
    return WholeItem(
        index, name, submitted.get("request"), outcome.get("report"), outcome.get("error"), previous, following
    )


def shorten(text: str) -> str:
    """Shorten a text for an index; a long one ends in its digest, so that it stays distinct."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[: MAX_TEXT_CHARS - 18]}… {sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _build_item(row: sa.Row[Any]) -> ListedItem:
    stage, finding, tool = (text or None for text in (row.stage, row.finding, row.tool))
    return ListedItem(row.position, row.custom_id, row.verdict, row.score, stage, finding, tool)


def _find_neighbour(
    connection: sa.Connection, chosen: list[sa.ColumnElement[bool]], index: int, step: int
) -> int | None:
    place = ITEMS.c.position
    beyond, order = (place < index, place.desc()) if step < 0 else (place > index, place)
    return connection.execute(sa.select(place).where(*chosen, beyond).order_by(order).limit(1)).scalar_one_or_none()


def _read_sent(payload: bytes | None, offset: int) -> Mapping[str, Any]:
    """Read what was sent for the item at an offset of its chunk; empty if it has expired or is damaged."""
    try:
        lines = zlib.decompress(payload or b"").splitlines()
    except zlib.error:
        return {}
    return json.loads(lines[offset]) if offset < len(lines) else {}
