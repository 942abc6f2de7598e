"""Where people disagree, with one another or with the judge; and all labels of a criterion, for export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service.store.database import Database
from service.store.labelling.items import LabelSubject, read_subject
from service.store.labelling.labels import HumanLabel, JudgeWord, build_judge_word, list_labels
from service.store.tables import LABEL_ITEMS, LABELS

_KEY = ("tenant", "criterion", "item")

PAGE_ITEMS = 32
"""Items that are exported at once."""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """An item of a criterion with the labels of people and the judge's answer."""

    item: str
    criterion: str
    stage: str
    labels: tuple[HumanLabel, ...]
    """In order of time, after those that settle a dispute, of which the last comes first."""
    judge: JudgeWord | None

    @property
    def opinions(self) -> tuple[HumanLabel, ...]:
        """The opinions on the whole trace that take a side."""
        opinions = [one for one in self.labels if one.step is None and one.source != "adjudication"]
        return tuple([one for one in opinions if one.label != "unsure"])

    @property
    def decision(self) -> HumanLabel | None:
        """The deciding label of the whole trace: the last one that settles a dispute."""
        return next((one for one in self.labels if one.step is None and one.source == "adjudication"), None)

    @property
    def is_settled(self) -> bool:
        """Whether somebody has settled it for all."""
        return self.decision is not None

    @property
    def is_disputed(self) -> bool:
        """Whether people disagree, and nobody has settled it."""
        return len({one.label for one in self.opinions}) > 1 and not self.is_settled

    @property
    def passes(self) -> bool | None:
        """The decision, else the majority; on a tie the first opinion; None if nobody takes a side."""
        if self.decision is not None:
            return None if self.decision.label == "unsure" else self.decision.label == "pass"
        sides = [one.label == "pass" for one in self.opinions]
        return None if not sides else sides[0] if 2 * sum(sides) == len(sides) else 2 * sum(sides) > len(sides)

    @property
    def differs_from_judge(self) -> bool:
        """Whether people disagree with the judge. What was left open disagrees with nothing."""
        if self.judge is None or self.judge.passed is None or self.passes is None:
            return False
        return self.passes is not self.judge.passed


class Opinions:
    """The labels in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_cases(self, tenant: str, criterion: str) -> tuple[LabelledCase, ...]:
        """List every labelled item of a criterion, by its first label."""
        with self._database.read() as connection:
            by_item: dict[str, list[HumanLabel]] = {}
            for label in list_labels(connection, tenant, criterion):
                by_item.setdefault(label.item, []).append(label)
            chosen = sa.select(LABEL_ITEMS).where(*[LABEL_ITEMS.c[name] == LABELS.c[name] for name in _KEY])
            chosen = chosen.where(LABELS.c.tenant == tenant, LABELS.c.criterion == criterion).distinct()
            rows = {row["item"]: row for row in connection.execute(chosen).mappings()}
        return tuple([_build_case(rows[item], labels) for item, labels in by_item.items() if item in rows])

    def read_subjects(self, tenant: str, cases: Sequence[LabelledCase]) -> Iterator[tuple[LabelledCase, LabelSubject]]:
        """Yield each case with its subject, reading some at a time."""
        for start in range(0, len(cases), PAGE_ITEMS):
            with self._database.read() as connection:
                cut = cases[start : start + PAGE_ITEMS]
                page = [(one, read_subject(connection, tenant, one.item, one.criterion)) for one in cut]
            yield from page


def _build_case(row: sa.RowMapping, labels: Sequence[HumanLabel]) -> LabelledCase:
    settling = [one for one in labels if one.source == "adjudication"]
    opinions = [one for one in labels if one.source != "adjudication"]
    ordered = (*reversed(settling), *opinions)
    return LabelledCase(row["item"], row["criterion"], row["stage"], ordered, build_judge_word(row))
