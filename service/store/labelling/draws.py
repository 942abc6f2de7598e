"""Random draws of items to label, and the source of a label."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from service.store.labelling.drafts import LabelDraft, LabelSource
from service.store.labelling.items import WHOLE_TRACE
from service.store.tables import LABEL_ITEMS, LABELS

DOUBLE_SHARE = 0.2
"""The share of items that two annotators label, so that their agreement can be measured."""


def match_items(tenant: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Match the items of a criterion."""
    return LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.criterion == criterion


def match_labels(tenant: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Match the labels of whole traces under a criterion."""
    return LABELS.c.tenant == tenant, LABELS.c.criterion == criterion, LABELS.c.step == WHOLE_TRACE


def match_own() -> tuple[sa.ColumnElement[bool], ...]:
    """Match the labels of the item in the outer row."""
    same = [LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "criterion", "item")]
    return (*same, LABELS.c.step == WHOLE_TRACE)


def is_labelled(*, by: str | None = None) -> sa.ColumnElement[bool]:
    """Whether the item in the outer row has a label, or one `by` somebody."""
    mine = () if by is None else (LABELS.c.annotator == by,)
    return sa.exists().where(*match_own(), *mine).correlate(LABEL_ITEMS)


def count_people() -> sa.ScalarSelect[int]:
    """Count the people who have labelled the item in the outer row."""
    own = (*match_own(), ~LABELS.c.decides)
    return sa.select(sa.func.count()).select_from(LABELS).where(*own).correlate(LABEL_ITEMS).scalar_subquery()


def compute_draw_bound(share: float) -> str:
    """Return the bound below which the draws are this share of all items."""
    return f"{min(int(share * 16**8), 16**8 - 1):08x}"


def is_due_again(annotator: str, due: str) -> sa.ColumnElement[bool]:
    """Whether exactly one other person has labelled the item, and it was drawn for a second opinion."""
    return (LABEL_ITEMS.c.draw < due) & ~is_labelled(by=annotator) & (count_people() == 1)


def select_drawn(tenant: str, criterion: str) -> sa.Select[str, str]:
    """Select the unlabelled items that are not left to a human, in the order of random draws."""
    free = (LABEL_ITEMS.c.waits == sa.false()) & ~is_labelled()
    chosen = sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*match_items(tenant, criterion), free)
    return chosen.order_by(LABEL_ITEMS.c.draw)


def check_source(connection: sa.Connection, tenant: str, draft: LabelDraft) -> LabelSource:
    """Check how a label came about: return its claimed source if true, else `direct`.

    A label that claims to be drawn must be next in line: no unlabelled item comes before it. So nobody can choose
    the labels from which a rate is computed.
    """
    if draft.source not in ("human", "second", "sample") or draft.step is not None:
        return draft.source
    own = [*match_items(tenant, draft.criterion), LABEL_ITEMS.c.item == draft.item]
    columns = [LABEL_ITEMS.c.waits, LABEL_ITEMS.c.draw]
    row = connection.execute(sa.select(*columns).where(*own)).one()
    if draft.source == "sample":
        return "sample" if not row.waits and _is_drawn(connection, tenant, draft.criterion, row) else "direct"
    if draft.source == "human":
        return "human" if row.waits else "direct"
    others = sa.exists().where(*match_own(), LABELS.c.annotator != draft.annotator).correlate(LABEL_ITEMS)
    labelled_by_others = connection.execute(sa.select(LABEL_ITEMS.c.item).where(*own, others)).one_or_none()
    return "direct" if labelled_by_others is None else "second"


def _is_drawn(connection: sa.Connection, tenant: str, criterion: str, row: sa.Row[Any]) -> bool:
    before = select_drawn(tenant, criterion).where(LABEL_ITEMS.c.draw < row.draw)
    return connection.execute(before.limit(1)).one_or_none() is None
