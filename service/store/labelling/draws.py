"""Random draws of items to label: strata of the judge's value, the next item in each, and the source of a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from service.stats.sampling import Stratum, cut_strata
from service.store.labelling.drafts import LabelDraft, LabelSource
from service.store.labelling.items import WHOLE_TRACE
from service.store.tables import LABEL_ITEMS, LABELS

DOUBLE_SHARE = 0.2
"""The share of items that two annotators label, so that their agreement can be measured."""


class AlikeItems(NamedTuple):
    """Items with the same judge value; -1 stands for items that no judge answered."""

    raw: float
    items: int
    labels: int
    passing: int


def read_strata(
    connection: sa.Connection, tenant: str, criterion: str
) -> tuple[list[Stratum], list[tuple[float, float]]]:
    """Read the strata of items not left to a human: by judge value, and one of items without an answer; with their bounds."""
    groups = _read_groups(connection, tenant, criterion)
    judged = {one.raw: one.items for one in groups if one.raw >= 0}
    ranges = cut_strata(judged) if judged else []
    ranges = [*([(-1.0, -1.0)] if any(one.raw < 0 for one in groups) else []), *ranges]
    return [_build_stratum(groups, low, high) for low, high in ranges], ranges


def _build_stratum(groups: Sequence[AlikeItems], low: float, high: float) -> Stratum:
    own = [one for one in groups if low <= one.raw <= high]
    sums = [sum(getattr(one, name) for one in own) for name in ("items", "labels", "passing")]
    return Stratum(low, high, *sums)


def _read_groups(connection: sa.Connection, tenant: str, criterion: str) -> list[AlikeItems]:
    """Count items not left to a human, by value. Reads an index alone: a hundred thousand items are short entries."""
    sure = (*match_items(tenant, criterion), LABEL_ITEMS.c.waits == sa.false())
    counted = sa.select(LABEL_ITEMS.c.raw, sa.func.count()).where(*sure).group_by(LABEL_ITEMS.c.raw)
    sides: dict[float | None, list[bool]] = {}
    for raw, total, first, decision in connection.execute(_select_sides(tenant, criterion)):
        word = decision or (first if total == 0 else None)
        if word is None or not word.endswith(":unsure"):
            sides.setdefault(raw, []).append(word.endswith(":pass") if word else total > 0)
    return [
        AlikeItems(-1.0 if raw is None else raw, items, len(sides.get(raw, ())), sum(sides.get(raw, ())))
        for raw, items in connection.execute(counted)
    ]


def _select_sides(tenant: str, criterion: str) -> sa.Select[float, int, str, str]:
    """Select each randomly drawn, not waiting item whose label takes a side.

    Columns: its value; by how much passing labels outnumber failing ones; of these labels the first, and of deciding labels the
    last, each as `ID:LABEL`, as ids sort by time.
    """
    on_side = ~LABELS.c.decides & (LABELS.c.label != "unsure")
    worth = sa.func.sum(sa.case((on_side & (LABELS.c.label == "pass"), 1), (on_side, -1), else_=0))
    word = LABELS.c.id + ":" + LABELS.c.label
    drawn = sa.func.max(sa.case((LABELS.c.source == "sample", 1), else_=0))
    same = [LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "criterion", "item")]
    return (
        sa.select(
            LABEL_ITEMS.c.raw,
            worth,
            sa.func.min(sa.case((on_side, word))),
            sa.func.max(sa.case((LABELS.c.decides, word))),
        )
        .join_from(LABELS, LABEL_ITEMS, sa.and_(*same))
        .where(*match_labels(tenant, criterion), LABEL_ITEMS.c.waits == sa.false())
        .group_by(LABELS.c.item, LABEL_ITEMS.c.raw)
        .having(drawn == 1, sa.func.max(sa.case((on_side | LABELS.c.decides, 1), else_=0)) == 1)
    )


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


def select_drawn(tenant: str, criterion: str, low: float, high: float) -> sa.Select[str, str]:
    """Select the unlabelled items of a stratum, in the order of random draws."""
    raw = sa.func.coalesce(LABEL_ITEMS.c.raw, -1.0)
    within = (LABEL_ITEMS.c.waits == sa.false()) & (raw >= low) & (raw <= high) & ~is_labelled()
    chosen = sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*match_items(tenant, criterion), within)
    return chosen.order_by(LABEL_ITEMS.c.draw)


def check_source(connection: sa.Connection, tenant: str, draft: LabelDraft) -> LabelSource:
    """Check how a label came about: return its claimed source if true, else `direct`.

    A label that claims to be drawn must be next in line: no unlabelled item of its stratum comes before it. So nobody can choose
    the labels from which a rate is computed.
    """
    if draft.source not in ("human", "second", "sample") or draft.step is not None:
        return draft.source
    own = [*match_items(tenant, draft.criterion), LABEL_ITEMS.c.item == draft.item]
    columns = [LABEL_ITEMS.c.waits, LABEL_ITEMS.c.raw, LABEL_ITEMS.c.draw]
    row = connection.execute(sa.select(*columns).where(*own)).one()
    if draft.source == "sample":
        return "sample" if not row.waits and _is_drawn(connection, tenant, draft.criterion, row) else "direct"
    if draft.source == "human":
        return "human" if row.waits else "direct"
    others = sa.exists().where(*match_own(), LABELS.c.annotator != draft.annotator).correlate(LABEL_ITEMS)
    labelled_by_others = connection.execute(sa.select(LABEL_ITEMS.c.item).where(*own, others)).one_or_none()
    return "direct" if labelled_by_others is None else "second"


def _is_drawn(connection: sa.Connection, tenant: str, criterion: str, row: sa.Row[Any]) -> bool:
    raw = -1.0 if row.raw is None else row.raw
    _, ranges = read_strata(connection, tenant, criterion)
    low, high = next((low, high) for low, high in ranges if low <= raw <= high)
    before = select_drawn(tenant, criterion, low, high).where(LABEL_ITEMS.c.draw < row.draw)
    return connection.execute(before.limit(1)).one_or_none() is None
