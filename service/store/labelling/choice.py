"""Choose what an annotator labels next: items left to a human, then second opinions, then what is drawn at random.

Items left to a human were selected by the judge's answer, so no rate may be computed from their labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from service.store.database import Database, build_from_row
from service.store.labelling.drafts import LabelDraft, LabelSource
from service.store.labelling.items import WHOLE_TRACE
from service.store.tables import LABEL_ITEMS, LABELS

DOUBLE_SHARE = 0.2
"""The share of items that two annotators label, so that their agreement can be measured."""


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


_OWN = (
    *[LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "criterion", "item")],
    LABELS.c.step == WHOLE_TRACE,
)
"""Matches the labels of the item in the outer row, as a whole."""

_LABELLED = sa.exists().where(*_OWN).correlate(LABEL_ITEMS)


class LabelChooser:
    """Chooses items from a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database, *, double: float = DOUBLE_SHARE) -> None:
        """`double`: the share of items that get a second opinion, from 0 to 1."""
        self._database = database
        self._due = f"{min(int(double * 16**8), 16**8 - 1):08x}"  # the share of all draws that is below it

    def choose(self, tenant: str, criterion: str, annotator: str) -> LabelChoice | None:
        """Choose the next item, none twice; None if nothing is left for this annotator."""
        mine = sa.exists().where(*_OWN, LABELS.c.annotator == annotator).correlate(LABEL_ITEMS)
        opinions = sa.select(sa.func.count()).select_from(LABELS).where(*_OWN, ~LABELS.c.decides).correlate(LABEL_ITEMS)
        second = (LABEL_ITEMS.c.draw < self._due) & ~mine & (opinions.scalar_subquery() == 1)
        # What is left to humans, the most doubtful first: closest to the threshold, ties at random.
        raw = sa.func.coalesce(LABEL_ITEMS.c.value, LABEL_ITEMS.c.raw, 0.5)
        doubt = sa.func.round(sa.cast(sa.func.abs(raw - sa.func.coalesce(LABEL_ITEMS.c.threshold, 0.5)), sa.Numeric), 9)
        items = sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*_match_items(tenant, criterion))
        waiting = items.where(LABEL_ITEMS.c.waits == sa.true(), ~_LABELLED | second).order_by(doubt, LABEL_ITEMS.c.draw)
        again = items.where(second).order_by(LABEL_ITEMS.c.draw)
        sources: dict[LabelSource, Any] = {
            "human": waiting,
            "second": again,
            "sample": _select_drawn(tenant, criterion),
        }
        with self._database.read() as connection:
            for source, chosen in sources.items():
                if found := connection.execute(chosen.limit(1)).one_or_none():
                    return LabelChoice(found.item, criterion, found.stage, source)
        return None

    def measure(self, tenant: str, criterion: str, annotator: str) -> LabelProgress:
        """Measure how far the labelling of a criterion is."""
        labels = (LABELS.c.tenant == tenant, LABELS.c.criterion == criterion, LABELS.c.step == WHOLE_TRACE)
        opinions = sa.func.count(sa.distinct(sa.case((~LABELS.c.decides, LABELS.c.annotator))))
        by_item = sa.select(opinions.label("people")).where(*labels).group_by(LABELS.c.item).subquery()
        items = sa.select(sa.func.count()).select_from(LABEL_ITEMS).where(*_match_items(tenant, criterion))
        counts = sa.select(
            items.scalar_subquery().label("items"),
            items.where(LABEL_ITEMS.c.waits == sa.true(), ~_LABELLED).scalar_subquery().label("waiting"),
            sa.select(sa.func.count()).select_from(by_item).scalar_subquery().label("labelled"),
            sa.select(sa.func.count())
            .select_from(by_item)
            .where(by_item.c.people > 1)
            .scalar_subquery()
            .label("twice"),
            sa.select(sa.func.count(sa.distinct(LABELS.c.annotator)))
            .where(*labels)
            .scalar_subquery()
            .label("annotators"),
            sa.select(sa.func.count()).where(*labels, LABELS.c.annotator == annotator).scalar_subquery().label("mine"),
        )
        with self._database.read() as connection:
            return build_from_row(LabelProgress, connection.execute(counts).mappings().one(), criterion=criterion)

    def count_waiting(self, tenant: str) -> dict[str, int]:
        """Count, by criterion, the items left to a human that have no label."""
        waits = (LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.waits, ~_LABELLED)
        columns = [LABEL_ITEMS.c.criterion, sa.func.count().label("n")]
        counted = sa.select(*columns).where(*waits).group_by(LABEL_ITEMS.c.criterion).order_by(LABEL_ITEMS.c.criterion)
        return {row["criterion"]: row["n"] for row in self._database.read_rows(counted)}


def check_source(connection: sa.Connection, tenant: str, draft: LabelDraft) -> LabelSource:
    """Check how a label came about: return its claimed source if true, else `direct`.

    A label that claims to be drawn must be next in line: no unlabelled item comes before it. So nobody can choose
    the labels from which a rate is computed.
    """
    if draft.source not in ("human", "second", "sample") or draft.step is not None:
        return draft.source
    others = sa.exists().where(*_OWN, LABELS.c.annotator != draft.annotator).correlate(LABEL_ITEMS)
    own = [*_match_items(tenant, draft.criterion), LABEL_ITEMS.c.item == draft.item]
    row = connection.execute(
        sa.select(LABEL_ITEMS.c.waits, LABEL_ITEMS.c.draw, others.label("labelled")).where(*own)
    ).one()
    if draft.source == "sample":
        before = _select_drawn(tenant, draft.criterion).where(LABEL_ITEMS.c.draw < row.draw).limit(1)
        holds = not row.waits and connection.execute(before).one_or_none() is None
    else:
        holds = row.waits if draft.source == "human" else row.labelled
    return draft.source if holds else "direct"


def _match_items(tenant: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    return LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.criterion == criterion


def _select_drawn(tenant: str, criterion: str) -> sa.Select[str, str]:
    """Select the unlabelled items that are not left to a human, in the order of random draws."""
    free = (*_match_items(tenant, criterion), LABEL_ITEMS.c.waits == sa.false(), ~_LABELLED)
    return sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*free).order_by(LABEL_ITEMS.c.draw)
