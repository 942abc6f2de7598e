"""List and count the items of a batch: one short row each, written with its result.

Lists and counts read these rows and their indexes, never the results: a batch of 100,000 items is as quick as one of ten.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

import sqlalchemy as sa
from pydantic import JsonValue

from service.core.rubric import STAGES, Stage
from service.store.database import Database, Page, build_from_row, cut_page
from service.store.labelling.items import select_batch_item, unpack_line
from service.store.tables import ITEMS

MAX_GROUPS = 200
"""Most groups of failures that are returned, the largest first."""

MAX_TEXT_CHARS = 160
"""Most characters of a text that is counted by: users choose the names of tools and groups, of any length."""

FAILED_STAGE = "f"
"""The letter of a stage that failed."""

ERROR_VERDICT = "error"
"""Stands in for the verdict of an item that could not be scored."""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item of a batch in a list. `stage`, `finding` and `tool`: where it failed first; null where it did not."""

    index: int
    custom_id: str
    verdict: str
    """`error` if it could not be scored."""
    score: float | None
    stage: str | None
    finding: str | None
    tool: str | None


ListedItems: TypeAlias = Page[ListedItem, int]
"""Items of a batch, in order."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The items that failed first at one stage, with one finding, at a call of one tool. Null: at no call."""

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

    def match(self, table: sa.Table = ITEMS) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on the items of batches, or on a table that has the same columns."""
        wanted_values = {"verdict": self.verdict, "stage": self.stage, "finding": self.finding, "tool": self.tool}
        found = [table.c[name] == value for name, value in wanted_values.items() if value is not None]
        if self.failed is not None:
            found.append(sa.func.substr(table.c.stages, STAGES.index(self.failed) + 1, 1) == FAILED_STAGE)
        return found


ALL_ITEMS = ItemChoice()


def build_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Build the columns by which an item is listed and counted, from those that are known: none broke where it is not said.

    Texts are shortened, so that an index takes them; a long one ends in its digest, to stay distinct.
    """
    found: dict[str, Any] = dict.fromkeys(("stage", "finding", "tool", "stages", "cluster"), "")
    found |= {"score": None, **facts}
    for name in ("stage", "finding", "tool", "cluster"):
        if len(text := found[name]) > MAX_TEXT_CHARS:
            found[name] = f"{text[: MAX_TEXT_CHARS - 18]}… {sha256(text.encode(errors='replace')).hexdigest()[:16]}"
    return found


def list_items(
    database: Database, batch: str, choice: ItemChoice = ALL_ITEMS, *, limit: int, after: int | None = None
) -> ListedItems:
    """List at most `limit` of the chosen items, after the index `after`."""
    own = (ITEMS.c.batch == batch, *choice.match(), ITEMS.c.position > (-1 if after is None else after))
    rows = database.read_rows(sa.select(ITEMS).where(*own).order_by(ITEMS.c.position).limit(limit + 1))
    return cut_page(rows, limit, _build_item, lambda item: item.index)


def count_items(database: Database, batch: str, choice: ItemChoice = ALL_ITEMS) -> int:
    """Count the chosen items among those that have an outcome."""
    counted = sa.select(sa.func.count()).select_from(ITEMS).where(ITEMS.c.batch == batch, *choice.match())
    return database.read_column(counted)[0]


def count_outcomes(database: Database, batch: str) -> Counter[tuple[str, str, str]]:
    """Count the items with each combination of verdict, stages and cluster."""
    return count_rows(database, ITEMS, ITEMS.c.batch == batch)


def count_rows(database: Database, table: sa.Table, own: sa.ColumnElement[bool]) -> Counter[tuple[str, str, str]]:
    """Do the same for a table that has the same columns."""
    columns = [table.c.verdict, table.c.stages, table.c.cluster]
    rows = database.read_rows(sa.select(*columns, sa.func.count().label("n")).where(own).group_by(*columns))
    return Counter({(row["verdict"], row["stages"], row["cluster"]): row["n"] for row in rows})


def group_failures(database: Database, batch: str) -> tuple[FailureGroup, ...]:
    """Group items by where they failed first, the largest group first: at most `MAX_GROUPS`."""
    return group_rows(database, ITEMS, ITEMS.c.batch == batch)


def group_rows(database: Database, table: sa.Table, own: sa.ColumnElement[bool]) -> tuple[FailureGroup, ...]:
    """Do the same for a table that has the same columns."""
    columns, count = [table.c.stage, table.c.finding, table.c.tool], sa.func.count().label("count")
    grouped = sa.select(*columns, count).where(own, table.c.stage != "").group_by(*columns)
    rows = database.read_rows(grouped.order_by(count.desc(), *columns).limit(MAX_GROUPS))
    return tuple([build_from_row(FailureGroup, row, tool=row["tool"] or None) for row in rows])


def find_item(database: Database, batch: str, index: int, choice: ItemChoice = ALL_ITEMS) -> WholeItem | None:
    """Find a whole item, with its neighbours among the chosen ones; None if there is no such item."""
    place, chosen = ITEMS.c.position, (ITEMS.c.batch == batch, *choice.match())
    before = sa.select(sa.func.max(place)).where(*chosen, place < index).scalar_subquery().label("previous")
    after = sa.select(sa.func.min(place)).where(*chosen, place > index).scalar_subquery().label("next")
    row = database.read_row(select_batch_item(batch, index).add_columns(before, after))
    if row is None:
        return None
    sent: dict[str, Any] = json.loads(unpack_line(row["payload"], index - row["first"]) or b"{}")
    outcome: dict[str, Any] = json.loads(row["line"] or "{}")
    name = outcome.get("custom_id") or sent.get("custom_id") or f"item-{index}"
    own = {"index": index, "custom_id": name, "request": sent.get("request")}
    return build_from_row(WholeItem, row, **own, report=outcome.get("report"), error=outcome.get("error"))


def _build_item(row: sa.RowMapping) -> ListedItem:
    broken = {name: row[name] or None for name in ("stage", "finding", "tool")}
    return build_from_row(ListedItem, row, index=row["position"], **broken)
