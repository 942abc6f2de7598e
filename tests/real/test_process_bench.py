"""Steps of agent traces that people and twenty recorded judges labelled."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from service.calibration.importers.published import ImportedSet, import_labels
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
