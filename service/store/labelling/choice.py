"""What an annotator labels next: what waits for a human, then second opinions, then what narrows the interval most.

What waits is chosen by what the judge said, so no rate may be worked out from labels of it. All else is drawn by chance
within strata of the judge's value, as `stats.sampling` plans it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from service.stats.sampling import Stratum, compute_half, cut_counted, plan_labels
from service.store.database import Database
from service.store.labelling.drafts import LabelSource
from service.store.labelling.labels import WHOLE
from service.store.tables import LABEL_ITEMS, LABELS

DOUBLE_SHARE = 0.2
"""The share of items that two annotators label, so that it can be told how far people agree."""

AHEAD = 20
"""Labels by which it is told how much narrower the interval gets."""


@dataclass(frozen=True, slots=True)
class LabelChoice:
    """An item that is to be labelled, and why it is its turn."""

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
    """Items that are left to a human and have no label."""
    twice: int
    """Items that two annotators or more have labelled."""
    mine: int
    """Labels of the annotator who asks."""
    annotators: int
    width: float | None
    """Of the 95 % interval of the pass rate by the labels that chance drew; null where a stratum has none."""
    width_next: float | None
    """The same with twenty labels more, where they help most."""


class _Group(NamedTuple):
    """Items of one value; -1 stands for what no judge looked at."""

    raw: float
    items: int
    labels: int
    passing: int


class LabelChooser:
    """Chooses over a database. All of it waits for the database, and so belongs into a thread."""

    def __init__(self, database: Database, *, double: float = DOUBLE_SHARE) -> None:
        """`double`: the share of items that get a second opinion, from 0 to 1."""
        self._database = database
        self._due = f"{min(int(double * 16**8), 16**8 - 1):08x}"

    def choose(self, tenant: str, criterion: str, annotator: str) -> LabelChoice | None:
        """What to label next, nothing twice; None where nothing is left for this annotator."""
        with self._database.read() as connection:
            waiting = self._select_waiting(tenant, criterion, annotator)
            if found := connection.execute(waiting.limit(1)).one_or_none():
                return LabelChoice(found.item, criterion, found.stage, "human")
            second = self._select_second(tenant, criterion, annotator)
            if found := connection.execute(second.limit(1)).one_or_none():
                return LabelChoice(found.item, criterion, found.stage, "second")
            return self._draw(connection, tenant, criterion)

    def measure(self, tenant: str, criterion: str, annotator: str) -> LabelProgress:
        """How far a criterion is."""
        items = sa.select(sa.func.count()).select_from(LABEL_ITEMS).where(*_match_items(tenant, criterion))
        by_item = (
            sa.select(sa.func.count(sa.distinct(sa.case((~LABELS.c.decides, LABELS.c.annotator)))).label("people"))
            .where(*_match_labels(tenant, criterion))
            .group_by(LABELS.c.item)
            .subquery()
        )
        sums = sa.select(
            sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((by_item.c.people > 1, 1), else_=0)), 0)
        ).select_from(by_item)
        people = sa.select(
            sa.func.count(sa.distinct(LABELS.c.annotator)),
            sa.func.coalesce(sa.func.sum(sa.case((LABELS.c.annotator == annotator, 1), else_=0)), 0),
        ).where(*_match_labels(tenant, criterion))
        with self._database.read() as connection:
            labelled, twice = connection.execute(sums).one()
            annotators, mine = connection.execute(people).one()
            widths = _compute_widths(read_strata(connection, tenant, criterion)[0])
            return LabelProgress(
                criterion,
                items=connection.execute(items).scalar_one(),
                labelled=labelled,
                waiting=connection.execute(items.where(LABEL_ITEMS.c.waits == sa.true(), ~_is_labelled())).scalar_one(),
                twice=int(twice),
                mine=int(mine),
                annotators=annotators,
                width=widths[0],
                width_next=widths[1],
            )

    def count_waiting(self, tenant: str) -> dict[str, int]:
        """Items by criterion that are left to a human and have no label."""
        waits = (LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.waits, ~_is_labelled())
        told = [LABEL_ITEMS.c.criterion, sa.func.count().label("n")]
        counted = sa.select(*told).where(*waits).group_by(LABEL_ITEMS.c.criterion).order_by(LABEL_ITEMS.c.criterion)
        with self._database.read() as connection:
            return {row["criterion"]: row["n"] for row in connection.execute(counted).mappings()}

    def _select_waiting(self, tenant: str, criterion: str, annotator: str) -> sa.Select[str, str]:
        """What is left to humans, the most doubtful first: at the threshold; of equals chance decides."""
        waits = (LABEL_ITEMS.c.waits == sa.true()) & (~_is_labelled() | self._is_due_again(annotator))
        raw = sa.func.coalesce(LABEL_ITEMS.c.value, LABEL_ITEMS.c.raw, 0.5)
        doubt = sa.func.round(sa.cast(sa.func.abs(raw - sa.func.coalesce(LABEL_ITEMS.c.threshold, 0.5)), sa.Numeric), 9)
        return _select_items(tenant, criterion, waits).order_by(doubt, LABEL_ITEMS.c.draw)

    def _select_second(self, tenant: str, criterion: str, annotator: str) -> sa.Select[str, str]:
        return _select_items(tenant, criterion, self._is_due_again(annotator)).order_by(LABEL_ITEMS.c.draw)

    def _is_due_again(self, annotator: str) -> sa.ColumnElement[bool]:
        """Whether one other has labelled it, and chance wants a second opinion."""
        return (LABEL_ITEMS.c.draw < self._due) & ~_is_labelled(by=annotator) & (_count_people() == 1)

    def _draw(self, connection: sa.Connection, tenant: str, criterion: str) -> LabelChoice | None:
        strata, ranges = read_strata(connection, tenant, criterion)
        for at in _order_strata(strata):
            low, high = ranges[at]
            raw = sa.func.coalesce(LABEL_ITEMS.c.raw, -1.0)
            within = (LABEL_ITEMS.c.waits == sa.false()) & (raw >= low) & (raw <= high) & ~_is_labelled()
            chosen = _select_items(tenant, criterion, within).order_by(LABEL_ITEMS.c.draw)
            found = connection.execute(chosen.limit(1)).one_or_none()
            if found is not None:
                return LabelChoice(found.item, criterion, found.stage, "sample")
        return None


def _order_strata(strata: Sequence[Stratum]) -> list[int]:
    """Where the next label helps most, and after that the others, in case somebody has labelled all of it meanwhile."""
    more = plan_labels(strata, 1)
    return sorted(range(len(strata)), key=lambda at: -more[at])


def _compute_widths(strata: Sequence[Stratum]) -> tuple[float | None, float | None]:
    if not strata or any(not one.labels for one in strata):
        return None, None
    return _compute_width(strata, [0] * len(strata)), _compute_width(strata, plan_labels(strata, AHEAD))


def _compute_width(strata: Sequence[Stratum], more: Sequence[int]) -> float:
    """Of the interval within [0, 1], were there so many labels more in each stratum."""
    whole = sum(one.items for one in strata)
    centre, half = sum(one.items / whole * one.share for one in strata), compute_half(strata, more)
    return min(1.0, centre + half) - max(0.0, centre - half)


def read_strata(
    connection: sa.Connection, tenant: str, criterion: str
) -> tuple[list[Stratum], list[tuple[float, float]]]:
    """Strata of what does not wait: of the judge's value, and one of what no judge looked at; with their bounds."""
    groups = _read_groups(connection, tenant, criterion)
    judged = {one.raw: one.items for one in groups if one.raw >= 0}
    ranges = cut_counted(judged) if judged else []
    ranges = [*([(-1.0, -1.0)] if any(one.raw < 0 for one in groups) else []), *ranges]
    return [_build_stratum(groups, low, high) for low, high in ranges], ranges


def _build_stratum(groups: Sequence[_Group], low: float, high: float) -> Stratum:
    own = [one for one in groups if low <= one.raw <= high]
    sums = [sum(getattr(one, name) for one in own) for name in ("items", "labels", "passing")]
    return Stratum(low, high, *sums)


def _read_groups(connection: sa.Connection, tenant: str, criterion: str) -> list[_Group]:
    """What does not wait, by value. Read from an index alone: a hundred thousand items are as many short entries."""
    sure = (*_match_items(tenant, criterion), LABEL_ITEMS.c.waits == sa.false())
    counted = sa.select(LABEL_ITEMS.c.raw, sa.func.count()).where(*sure).group_by(LABEL_ITEMS.c.raw)
    sides: dict[float | None, list[bool]] = {}
    for raw, total, first, decision in connection.execute(_select_sides(tenant, criterion)):
        word = decision or (first if total == 0 else None)
        if word is None or not word.endswith(":unsure"):
            sides.setdefault(raw, []).append(word.endswith(":pass") if word else total > 0)
    return [
        _Group(-1.0 if raw is None else raw, items, len(sides.get(raw, ())), sum(sides.get(raw, ())))
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
        .where(*_match_labels(tenant, criterion), LABEL_ITEMS.c.waits == sa.false())
        .group_by(LABELS.c.item, LABEL_ITEMS.c.raw)
        .having(drawn == 1, sa.func.max(sa.case((on_side | LABELS.c.decides, 1), else_=0)) == 1)
    )


def _select_items(tenant: str, criterion: str, which: sa.ColumnElement[bool]) -> sa.Select[str, str]:
    return sa.select(LABEL_ITEMS.c.item, LABEL_ITEMS.c.stage).where(*_match_items(tenant, criterion), which)


def _match_items(tenant: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    return LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.criterion == criterion


def _match_labels(tenant: str, criterion: str) -> tuple[sa.ColumnElement[bool], ...]:
    return LABELS.c.tenant == tenant, LABELS.c.criterion == criterion, LABELS.c.step == WHOLE


def _match_own() -> tuple[sa.ColumnElement[bool], ...]:
    """The labels of the item in the row outside."""
    same = [LABELS.c[name] == LABEL_ITEMS.c[name] for name in ("tenant", "criterion", "item")]
    return (*same, LABELS.c.step == WHOLE)


def _is_labelled(*, by: str | None = None) -> sa.ColumnElement[bool]:
    mine = () if by is None else (LABELS.c.annotator == by,)
    return sa.exists().where(*_match_own(), *mine).correlate(LABEL_ITEMS)


def _count_people() -> sa.ScalarSelect[int]:
    own = (*_match_own(), ~LABELS.c.decides)
    return sa.select(sa.func.count()).select_from(LABELS).where(*own).correlate(LABEL_ITEMS).scalar_subquery()
