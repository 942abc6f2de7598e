"""Steps of agent traces that people and twenty recorded judges labelled."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from service.calibration.predictions import JudgedSet
from service.reading.request import read_request, read_request_trace
from tests.real.published import read_published

pytestmark = pytest.mark.shared_data


def read(folder: Path, name: str, most: int | None = None) -> JudgedSet:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return read_published(lines.read().splitlines()[:most], source=name)


def test_steps_are_read(shared_data: Path) -> None:
    found = read(shared_data / "process_bench", "steps_dev", 12)
    assert len({item.run for item in found.labels.items}) == 12
    assert len({one.model for one in found.predictions}) == 20
    for item in [item for item in found.labels.items if item.trace is not None][::20]:
        assert not read_request_trace(read_request({"rubric": "step_quality", "trace": item.trace})).unread
