"""What chance draws: strata of the judge's value, whose turn an item is in them, and whether a label came of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from service.stats.sampling import Stratum, cut_strata_of_counts
from service.store.labelling.drafts import LabelDraft, LabelSource
from service.store.labelling.items import WHOLE
from service.store.tables import LABEL_ITEMS, LABELS

DOUBLE_SHARE = 0.2
"""The share of items that two annotators label, so that it can be told how far people agree."""


class AlikeItems(NamedTuple):
    """Items of one value; -1 stands for what no judge looked at."""

    raw: float
    items: int
    labels: int
    passing: int


def read_strata(
    connection: sa.Connection, tenant: str, criterion: str
) -> tuple[list[Stratum], list[tuple[float, float]]]:
    """Strata of what does not wait: of the judge's value, and one of what no judge looked at; with their bounds."""
    groups = _read_groups(connection, tenant, criterion)
    judged = {one.raw: one.items for one in groups if one.raw >= 0}
    ranges = cut_strata_of_counts(judged) if judged else []
    ranges = [*([(-1.0, -1.0)] if any(one.raw < 0 for one in groups) else []), *ranges]
    return [_build_stratum(groups, low, high) for low, high in ranges], ranges


def _build_stratum(groups: Sequence[AlikeItems], low: float, high: float) -> Stratum:
    own = [one for one in groups if low <= one.raw <= high]
    sums = [sum(getattr(one, name) for one in own) for name in ("items", "labels", "passing")]
    return Stratum(low, high, *sums)


def _read_groups(connection: sa.Connection, tenant: str, criterion: str) -> list[AlikeItems]:
    """What does not wait, by value. Read from an index alone: a hundred thousand items are as many short entries."""
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
    """Each item on a side that chance drew and that does not wait.

    Its value; by how much more people pass than fail it; of these the first, and of labels that decide the last, each as
    `ID:LABEL`: ids sort by time.
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
    """What finds the items of a criterion."""
    return LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.criterion == criterion


def match_labels(tenant: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    """What finds the labels of whole traces of a criterion."""
    return LABELS.c.tenant == tenant, LABELS.c.criterion == criterion, LABELS.c.step == WHOLE


def match_own() -> tuple[sa.ColumnElement[bool], ...]:
    """The labels of the item in the row outside."""
    same = [LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "criterion", "item")]
    return (*same, LABELS.c.step == WHOLE)


def is_labelled(*, by: str | None = None) -> sa.ColumnElement[bool]:
    """Whether the item in the row outside has a label, or one `by` somebody."""
    mine = () if by is None else (LABELS.c.annotator == by,)
    return sa.exists().where(*match_own(), *mine).correlate(LABEL_ITEMS)


def count_people() -> sa.ScalarSelect[int]:
    """How many have labelled the item in the row outside."""
    own = (*match_own(), ~LABELS.c.decides)
    return sa.select(sa.func.count()).select_from(LABELS).where(*own).correlate(LABEL_ITEMS).scalar_subquery()


def find_due(share: float) -> str:
    """Draws below this are of so large a share of all items."""
    return f"{min(int(share * 16**8), 16**8 - 1):08x}"


def is_due_again(annotator: str, due: str) -> sa.ColumnElement[bool]:
    """Whether one other has labelled it, and chance wants a second opinion."""
    return (LABEL_ITEMS.c.draw < due) & ~is_labelled(by=annotator) & (count_people() == 1)


def select_drawn(tenant: str, criterion: str, low: float, high: float) -> sa.Select[str, str]:
    """What nobody has labelled of a stratum, in the order in which chance draws."""
    raw = sa.func.coalesce(LABEL_ITEMS.c.raw, -1.0)
    within = (LABEL_ITEMS.c.waits == sa.false()) & (raw >= low) & (raw <= high) & ~is_labelled()
    chosen = sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*match_items(tenant, criterion), within)
    return chosen.order_by(LABEL_ITEMS.c.draw)


def check_source(connection: sa.Connection, tenant: str, draft: LabelDraft) -> LabelSource:
    """How a label came about: as it says where that is so, else `direct`.

    What says that chance drew it must be its turn: nothing of its stratum that nobody has labelled comes before it. So nobody
    chooses what a rate is worked out from.
    """
    if draft.source not in ("human", "second", "sample") or draft.step is not None:
        return draft.source
    own = [*match_items(tenant, draft.criterion), LABEL_ITEMS.c.item == draft.item]
    told = [LABEL_ITEMS.c.waits, LABEL_ITEMS.c.raw, LABEL_ITEMS.c.draw]
    row = connection.execute(sa.select(*told).where(*own)).one()
    if draft.source == "sample":
        return "sample" if not row.waits and _is_drawn(connection, tenant, draft.criterion, row) else "direct"
    if draft.source == "human":
        return "human" if row.waits else "direct"
    others = sa.exists().where(*match_own(), LABELS.c.annotator != draft.annotator).correlate(LABEL_ITEMS)
    again = connection.execute(sa.select(LABEL_ITEMS.c.item).where(*own, others)).one_or_none()
    return "direct" if again is None else "second"


def _is_drawn(connection: sa.Connection, tenant: str, criterion: str, row: sa.Row[Any]) -> bool:
    raw = -1.0 if row.raw is None else row.raw
    _, ranges = read_strata(connection, tenant, criterion)
    low, high = next((low, high) for low, high in ranges if low <= raw <= high)
    before = select_drawn(tenant, criterion, low, high).where(LABEL_ITEMS.c.draw < row.draw)
    return connection.execute(before.limit(1)).one_or_none() is None
