"""Steps of agent traces that people and twenty recorded judges labelled: what a stack of them knows beside the best."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from service.calibration.bench import build_bench
from service.calibration.ensembles.stack_report import build_stack
from service.calibration.figures import Resampling
from service.calibration.importers.published import ImportedSet, import_labels
from service.calibration.options import ReportOptions
from service.calibration.predictions import group_by_judge
from service.request import read_request, read_request_trace

pytestmark = pytest.mark.shared_data


def read(folder: Path, name: str, most: int | None = None) -> ImportedSet:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return import_labels(lines.read().splitlines()[:most], source=name)


def test_steps_are_read(shared_data: Path) -> None:
    found = read(shared_data / "process_bench", "steps_dev", 12)
    assert len({item.run for item in found.labels.items}) == 12
    assert len({one.model for one in found.predictions}) == 20
    failed = read(shared_data / "tau_retail", "runs_dev").labels.items
    assert (len({item.run for item in failed}), sum(not item.passes for item in failed)) == (9, 9)
    for item in failed[::20]:
        assert item.trace is not None
        trace = read_request_trace(read_request({"rubric": "step_quality", "trace": item.trace}))
        assert not trace.unread


@pytest.mark.chaos
def test_the_stack_beats_the_best_single_judge(shared_data: Path) -> None:
    """Five folds by query, intervals of paired differences by query."""
    found = read(shared_data / "process_bench", "steps_dev")
    options = ReportOptions(resampling=Resampling(draws=300), reported_shares=())
    judges = [build_bench(found.labels, one, options) for one in group_by_judge(found.predictions)]
    stack = build_stack([judge for judge in judges if judge is not None], options)
    assert stack is not None
    assert (len(found.labels.items), len(stack.members), stack.best) == (4226, 20, "gemini-3-flash-preview-thinking")
    assert stack.best_figures.of("kappa").value == pytest.approx(0.592, abs=2e-3)
    assert (stack.best_first_error and stack.best_first_error.value) == pytest.approx(0.648, abs=2e-3)
    assert (stack.kappa.value or 0) >= 0.06
    assert (stack.kappa.low or 0) > 0
    assert ((stack.first_error_gain and stack.first_error_gain.value) or 0) >= 0.01
    assert (stack.figures.of("ece").value or 1) <= 0.025
    assert {one.name for one in stack.families} == {"bfcl", "gaia_dev", "hotpotqa", "tau2"}
