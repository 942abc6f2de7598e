"""Where people differ, from one another and from the judge; and all that was said of a criterion, for export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service.store.database import Database
from service.store.labelling.items import LabelSubject, read_subject
from service.store.labelling.labels import HumanLabel, JudgeWord, build_judge_word, read_labels_of
from service.store.tables import LABEL_ITEMS, LABELS

PAGE = 32
"""Items that are exported at once."""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """An item of a criterion with what people and the judge say of it."""

    item: str
    criterion: str
    stage: str
    labels: tuple[HumanLabel, ...]
    """First to last; one that settles a disagreement goes before all others."""
    judge: JudgeWord | None

    @property
    def counted(self) -> tuple[HumanLabel, ...]:
        """Labels of the whole trace that are on a side."""
        return tuple([one for one in self.labels if one.label != "unsure" and one.step is None])

    @property
    def is_settled(self) -> bool:
        """Whether somebody decided for all."""
        return any(one.source == "adjudication" for one in self.labels)

    @property
    def is_disputed(self) -> bool:
        """Whether people differ, and nobody has settled it."""
        return len({one.label for one in self.counted}) > 1 and not self.is_settled

    @property
    def passes(self) -> bool | None:
        """What most say; of even sides the first one; None where nobody is on a side."""
        said = [one.label == "pass" for one in self.counted]
        return None if not said else said[0] if 2 * sum(said) == len(said) else 2 * sum(said) > len(said)

    @property
    def differs_from_judge(self) -> bool:
        """Whether people say another thing than the judge."""
        if self.judge is None or self.passes is None:
            return False
        value = self.judge.raw if self.judge.value is None else self.judge.value
        threshold = 0.5 if self.judge.threshold is None else self.judge.threshold
        return self.passes is not (value >= threshold)


class Opinions:
    """What was said in a database. All of it waits for the database, and so belongs into a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_cases(self, tenant: str, criterion: str) -> tuple[LabelledCase, ...]:
        """Every labelled item of a criterion, by its first label."""
        with self._database.read() as connection:
            by_item: dict[str, list[HumanLabel]] = {}
            for label in read_labels_of(connection, tenant, criterion):
                by_item.setdefault(label.item, []).append(label)
            labelled = sa.exists().where(
                LABELS.c.tenant == tenant, LABELS.c.criterion == criterion, LABELS.c.item == LABEL_ITEMS.c.item
            )
            chosen = sa.select(LABEL_ITEMS).where(
                LABEL_ITEMS.c.tenant == tenant, LABEL_ITEMS.c.criterion == criterion, labelled
            )
            rows = {row["item"]: row for row in connection.execute(chosen).mappings()}
        return tuple([_build_case(rows[item], labels) for item, labels in by_item.items() if item in rows])

    def read_subjects(self, tenant: str, items: Sequence[str]) -> Iterator[tuple[str, LabelSubject]]:
        """What there is to look at of each, some at a time."""
        for start in range(0, len(items), PAGE):
            with self._database.read() as connection:
                page = [(item, read_subject(connection, tenant, item)) for item in items[start : start + PAGE]]
            yield from page


def _build_case(row: sa.RowMapping, labels: Sequence[HumanLabel]) -> LabelledCase:
    ordered = sorted(labels, key=lambda one: one.source != "adjudication")
    return LabelledCase(row["item"], row["criterion"], row["stage"], tuple(ordered), build_judge_word(row))
