"""Labelled items and predictions for tests, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from service.calibration.labels import AnnotatorLabel, LabelledItem, LabelledSet, build_labelled_set
from service.calibration.predictions import Prediction


def item(number: int, *passes: bool, **fields: object) -> LabelledItem:
    """An item that annotators `a`, `b`, ... pass or fail."""
    labels = tuple([AnnotatorLabel(annotator="abcdef"[at], label=label) for at, label in enumerate(passes)])
    given = {"id": f"i{number:05}", "criterion": "c", "group": f"g{number // 4}", "labels": labels, **fields}
    return LabelledItem.model_validate(given)


def drawn(
    count: int, *, seed: int = 1, judges: tuple[float, ...] = (0.8,), **fields: object
) -> tuple[LabelledSet, tuple[Prediction, ...]]:
    """Items of four each group with two annotators who are mostly right, and judges that are right so often."""
    rng = random.Random(seed)  # noqa: S311
    items: list[LabelledItem] = []
    predictions: list[Prediction] = []
    for number in range(count):
        truth = rng.random() < 0.6
        one = item(
            number,
            *[truth if rng.random() < 0.85 else not truth for _ in range(2)],
            answer="word " * rng.randint(1, 40),
            stratum=f"s{number % 3}",
            family=f"f{number % 2}",
            **fields,
        )
        items.append(one)
        for at, right in enumerate(judges):
            sure = rng.choice((0.6, 0.75, 0.9))
            raw = sure if (rng.random() < right) == truth else 1 - sure
            predictions.append(Prediction(id=one.id, criterion="c", raw=raw, model=f"m{at}"))
    return build_labelled_set(enumerate(items, 1), source="drawn"), tuple(predictions)


def write_lines(file: Path, rows: Iterable[BaseModel]) -> Path:
    file.write_text("".join(f"{row.model_dump_json()}\n" for row in rows), "utf-8")
    return file
