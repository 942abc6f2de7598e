"""Choose what an annotator labels next: items left to a human, then second opinions, then what is drawn at random.

Items left to a human were selected by the judge's answer, so no rate may be computed from their labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from service.store.database import Database
from service.store.labelling.drafts import LabelSource
from service.store.labelling.draws import (
    DOUBLE_SHARE,
    compute_draw_bound,
    is_due_again,
    is_labelled,
    match_items,
    match_labels,
    select_drawn,
)
from service.store.tables import LABEL_ITEMS, LABELS


@dataclass(frozen=True, slots=True)
class LabelChoice:
    """An item to label, and why it was chosen."""

    item: str
    criterion: str
    stage: str
    source: LabelSource


@dataclass(frozen=True, slots=True)
class LabelProgress:
    """How far the labelling of a criterion is."""

    criterion: str
    items: int
    labelled: int
    waiting: int
    """Items left to a human that have no label."""
    twice: int
    """Items that two or more annotators have labelled."""
    mine: int
    """Labels by the annotator who asks."""
    annotators: int


class LabelChooser:
    """Chooses items from a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database, *, double: float = DOUBLE_SHARE) -> None:
        """`double`: the share of items that get a second opinion, from 0 to 1."""
        self._database = database
        self._due = compute_draw_bound(double)

    def choose(self, tenant: str, criterion: str, annotator: str) -> LabelChoice | None:
        """Choose the next item, none twice; None if nothing is left for this annotator."""
        with self._database.read() as connection:
            waiting = self._select_waiting(tenant, criterion, annotator)
            if found := connection.execute(waiting.limit(1)).one_or_none():
                return LabelChoice(found.item, criterion, found.stage, "human")
            second = self._select_second(tenant, criterion, annotator)
            if found := connection.execute(second.limit(1)).one_or_none():
                return LabelChoice(found.item, criterion, found.stage, "second")
            found = connection.execute(select_drawn(tenant, criterion).limit(1)).one_or_none()
            return None if found is None else LabelChoice(found.item, criterion, found.stage, "sample")

    def measure(self, tenant: str, criterion: str, annotator: str) -> LabelProgress:
        """Measure how far the labelling of a criterion is."""
        items = sa.select(sa.func.count()).select_from(LABEL_ITEMS).where(*match_items(tenant, criterion))
        by_item = (
            sa.select(sa.func.count(sa.distinct(sa.case((~LABELS.c.decides, LABELS.c.annotator)))).label("people"))
            .where(*match_labels(tenant, criterion))
            .group_by(LABELS.c.item)
            .subquery()
        )
        sums = sa.select(
            sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((by_item.c.people > 1, 1), else_=0)), 0)
        ).select_from(by_item)
        people = sa.select(
            sa.func.count(sa.distinct(LABELS.c.annotator)),
            sa.func.coalesce(sa.func.sum(sa.case((LABELS.c.annotator == annotator, 1), else_=0)), 0),
        ).where(*match_labels(tenant, criterion))
        with self._database.read() as connection:
            labelled, twice = connection.execute(sums).one()
            annotators, mine = connection.execute(people).one()
            return LabelProgress(
                criterion,
                items=connection.execute(items).scalar_one(),
                labelled=labelled,
                waiting=connection.execute(items.where(LABEL_ITEMS.c.waits == sa.true(), ~is_labelled())).scalar_one(),
                twice=int(twice),
                mine=int(mine),
                annotators=annotators,
            )

    def count_waiting(self, tenant: str) -> dict[str, int]:
        """Count, by criterion, the items left to a human that have no label."""
        waits = (LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.waits, ~is_labelled())
        columns = [LABEL_ITEMS.c.criterion, sa.func.count().label("n")]
        counted = sa.select(*columns).where(*waits).group_by(LABEL_ITEMS.c.criterion).order_by(LABEL_ITEMS.c.criterion)
        with self._database.read() as connection:
            return {row["criterion"]: row["n"] for row in connection.execute(counted).mappings()}

    def _select_waiting(self, tenant: str, criterion: str, annotator: str) -> sa.Select[str, str]:
        """Select what is left to humans, the most doubtful first: closest to the threshold, ties at random."""
        waits = (LABEL_ITEMS.c.waits == sa.true()) & (~is_labelled() | is_due_again(annotator, self._due))
        raw = sa.func.coalesce(LABEL_ITEMS.c.value, LABEL_ITEMS.c.raw, 0.5)
        doubt = sa.func.round(sa.cast(sa.func.abs(raw - sa.func.coalesce(LABEL_ITEMS.c.threshold, 0.5)), sa.Numeric), 9)
        return _select_items(tenant, criterion, waits).order_by(doubt, LABEL_ITEMS.c.draw)

    def _select_second(self, tenant: str, criterion: str, annotator: str) -> sa.Select[str, str]:
        return _select_items(tenant, criterion, is_due_again(annotator, self._due)).order_by(LABEL_ITEMS.c.draw)


def _select_items(tenant: str, criterion: str, which: sa.ColumnElement[bool]) -> sa.Select[str, str]:
    return sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*match_items(tenant, criterion), which)
