"""tau-bench's rewards on every packaged run: the replayed verdict on the state, and the recorded reward."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from service import Report, score

pytestmark = pytest.mark.shared_data


class Run(NamedTuple):
    row: dict[str, Any]
    ours: Report
    theirs: Report


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> list[Run]:
    with gzip.open(shared_data / "tau_airline" / "runs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Run(row, scored(row, compat=False), scored(row, compat=True)) for row in rows]


def scored(row: dict[str, Any], *, compat: bool) -> Report:
    return score({"rubric": {"extends": "tau_reward", "compat": compat}, "trace": {**row, "format": "tau"}})


def value(report: Report, name: str) -> float | None:
    return next(criterion.value for criterion in report.criteria if criterion.id == name)


def found(report: Report, code: str) -> list[str]:
    return [finding.message for finding in report.findings() if finding.code == code]


def test_the_state_is_judged_as_by_the_replay_on_every_run(runs: list[Run]) -> None:
    assert len(runs) == 100
    wrong = [
        (run.row["task_id"], run.row["trial"]) for run in runs if (value(run.ours, "state") == 1.0) is not matches(run)
    ]
    assert wrong == []
    assert sum(map(matches, runs)) == 32


def matches(run: Run) -> bool:
    return run.row["final_db_matches_gold"]


def test_a_state_that_differs_is_named_by_path(runs: list[Run]) -> None:
    codes = ("state_missing", "state_wrong", "state_unexpected")
    named = [any(found(run.ours, code) for code in codes) for run in runs]
    assert named == [not matches(run) for run in runs]


def test_the_reward_is_the_recorded_one_on_every_run(runs: list[Run]) -> None:
    assert [run.theirs.score for run in runs] == [run.row["reward"] for run in runs]


def test_ours_is_the_recorded_one_wherever_the_run_ended(runs: list[Run]) -> None:
    ended = [run for run in runs if run.row["official"]["terminated"]]
    assert [run.ours.score for run in ended] == [run.row["reward"] for run in ended]
    assert [run for run in runs if found(run.ours, "not_ended")] == [run for run in runs if run not in ended]
    assert len(ended) == 97


def test_the_one_difference_is_a_run_that_did_not_end(runs: list[Run]) -> None:
    differing = [run for run in runs if found(run.theirs, "compat_differs")]
    assert [(run.row["task_id"], run.row["trial"], run.theirs.score, run.ours.score) for run in differing] == [
        (2, 1, 0.0, 1.0)
    ]


def test_outputs_are_found_as_recorded(runs: list[Run]) -> None:
    recorded = [run for run in runs if run.row["official"]["r_outputs"] is not None]
    assert len(recorded) == 9
    for run in recorded:
        assert (value(run.ours, "outputs") == 1.0) is run.row["official"]["r_outputs"]
        told = run.row["official"]["outputs_found"].values()
        assert len(found(run.ours, "not_said")) == sum(not one for one in told)
