"""What is promised of recorded judges of D2T-Eval on half of the payloads, and what became of it on the other half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.calibration.figures import Resampling
from service.calibration.importers.published import ImportedSet
from service.calibration.labels import LabelledSet
from service.calibration.options import ReportOptions
from service.calibration.results import JudgeReport
from service.calibration.run import calibrate
from service.calibration.splits import assign_folds
from tests.bulk import WHOLE
from tests.real.test_labels_agreement import read

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]

SPLITS = 500 if WHOLE else 2
LEVELS = (0.85, 0.9)
MOST_BROKEN = 0.07
OPTIONS = ReportOptions(resampling=Resampling(draws=0), levels=LEVELS, worst=0)


def split_at(labels: LabelledSet, seed: int) -> LabelledSet:
    """One half of the payloads to fit, the other held out."""
    half = assign_folds(labels.items, seed=str(seed), folds=2)
    return replace(
        labels,
        items=tuple([one.model_copy(update={"split": ("fit", "test")[half[one.group]]}) for one in labels.items]),
    )


def iter_judges(found: ImportedSet) -> Iterator[JudgeReport]:
    for seed in range(SPLITS):
        report = calibrate(split_at(found.labels, seed), found.predictions, OPTIONS).report
        yield from report.judges
        yield from [jury.report for jury in report.juries]


def test_promises_are_kept(shared_data: Path) -> None:
    found = read(shared_data, "groundedness_d2teval_cal")
    broken, covered = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
    for judge in iter_judges(found):
        for promise in judge.promises:
            key = judge.name, promise.guarantee.share
            covered[key] += promise.coverage.value or 0.0  # pyright: ignore[reportArgumentType]
            broken[key] += promise.agreement.value is not None and promise.agreement.value < promise.guarantee.share
    assert covered["jury of 6", 0.85] / SPLITS > (0.3 if WHOLE else 0.1)
    most = MOST_BROKEN * SPLITS if WHOLE else 1
    assert not {key: count / SPLITS for key, count in broken.items() if count > most}
