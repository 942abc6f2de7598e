"""What is promised of recorded judges of D2T-Eval on half of the payloads, and what became of it on the other half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.calibration.bench import Bench, build_bench
from service.calibration.figures import Resampling
from service.calibration.labels import LabelledSet
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, group_by_judge
from service.calibration.report.held_out import measure_promise
from service.calibration.run import build_jury_bench
from service.calibration.splits import assign_folds
from tests.bulk import WHOLE
from tests.real.test_labels_agreement import read

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]

SPLITS = 500 if WHOLE else 10
LEVELS = (0.85, 0.9)
MOST_BROKEN = 0.07
OPTIONS = ReportOptions(resampling=Resampling(draws=0), reported_shares=LEVELS)
LEAST_COVERED = {("jury of 6", 0.85): 0.5, ("jury of 6", 0.9): 0.13, ("o3-mini", 0.85): 0.45}
"""Of the held-out half, by what half of the labels can show."""


def split_at(labels: LabelledSet, seed: int) -> LabelledSet:
    """One half of the payloads to fit, the other held out."""
    half = assign_folds(labels.items, seed=str(seed), folds=2)
    return replace(
        labels,
        items=tuple([one.model_copy(update={"split": ("fit", "test")[half[one.group]]}) for one in labels.items]),
    )


def iter_benches(labels: LabelledSet, recorded: tuple[JudgePredictions, ...]) -> Iterator[Bench]:
    """Each judge, and the jury of all."""
    judges = [bench for one in recorded if (bench := build_bench(labels, one, OPTIONS)) is not None]
    yield from judges
    jury = build_jury_bench(judges, OPTIONS)
    assert jury is not None
    yield jury


def test_promises_are_kept(shared_data: Path) -> None:
    found = read(shared_data, "groundedness_d2teval_cal")
    recorded = group_by_judge(found.predictions)
    broken, covered = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
    for seed in range(SPLITS):
        for bench in iter_benches(split_at(found.labels, seed), recorded):
            for share in LEVELS:
                promise = measure_promise(bench, share, OPTIONS)
                covered[bench.name, share] += promise.coverage.value or 0.0  # pyright: ignore[reportArgumentType]
                broken[bench.name, share] += (promise.agreement.value or 1.0) < share
    for key in sorted(covered):
        print(key, f"covered {covered[key] / SPLITS:.3f}, broken {broken[key] / SPLITS:.3f}")  # noqa: T201 (for the docs)
    assert all(covered[key] / SPLITS > least - (0 if WHOLE else 0.1) for key, least in LEAST_COVERED.items())
    most = MOST_BROKEN * SPLITS if WHOLE else 2
    assert not {key: count / SPLITS for key, count in broken.items() if count > most}
