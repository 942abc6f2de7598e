"""Packaged outputs of the Berkeley Function-Calling Leaderboard: its own verdict on each, as a request is scored."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service import score
from tests.bulk import WHOLE, share

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_the_official_verdict_on_every_row(shared_data: Path) -> None:
    questions = {row["id"]: row for row in read_lines(shared_data / "bfcl" / "questions.jsonl.gz")}
    rows = [questions[row["id"]] | row for row in read_lines(shared_data / "bfcl" / "rows.jsonl.gz")]
    looked_at = share(rows, one_in=11)
    reports = [score({"rubric": "bfcl_ast", "trace": {**row, "format": "bfcl"}, "judges": "off"}) for row in looked_at]
    wrong = [
        row["id"]
        for row, report in zip(looked_at, reports, strict=True)
        if (report.verdict == "pass") != row["official"]["valid"]
    ]
    assert (len(reports), wrong) == (7440 if WHOLE else 677, [])
