"""Packaged runs of tau-bench's airline domain under four_step: one in three in `make test`."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from service import Report, score
from tests.bulk import WHOLE, share

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "tau_airline" / "runs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


@pytest.fixture(scope="module")
def reports(runs: list[dict[str, Any]], shared_data: Path) -> list[Report]:
    tools = json.loads((shared_data / "tau_airline" / "tools.json").read_text("utf-8"))
    return [
        score({"trace": {**run, "format": "tau", "tools": tools}, "judges": "off"}) for run in share(runs, one_in=3)
    ]


def test_every_run_is_scored(runs, reports):
    assert len(reports) == (100 if WHOLE else 34)
    assert sum(len(report.steps) for report in reports) == (621 if WHOLE else 237)
    kinds: Counter[str] = Counter()
    causes: Counter[tuple[str, str]] = Counter()
    for report in reports:
        found = [(each.id, o.outcome) for each in report.criteria for o in each.outcomes]
        found += [pair for step in report.steps for pair in step.outcomes.items()]
        kinds.update(outcome.kind for _, outcome in found)
        causes.update((name, o.cause) for name, o in found if o.kind == "skipped" and o.cause != "not_applicable")
    assert kinds["errored"] == 0
    left_out = {"blocked", "out_of_scope", "not_captured", "unread", "not_asked"}
    assert {cause for _, cause in causes} <= left_out  # nothing is too long
    assert {name for name, cause in causes if cause in ("not_captured", "unread")} == {"result_groundedness"}
    suspected = {name: n for (name, cause), n in causes.items() if cause == "not_asked"}
    whole = {"result_groundedness": 3, "argument_plausibility": 3}
    assert suspected == (whole if WHOLE else {"result_groundedness": 1, "argument_plausibility": 1})
    assert {name: n for (name, _), n in causes.items() if name in ("tool_name", "schema", "arguments")} == {
        "tool_name": 29 if WHOLE else 6,
        "arguments": 79 if WHOLE else 20,
    }


def test_every_call_fits_the_catalogue(reports):
    """gpt-4o's calls parse, name a tool on offer, and mostly fit its schema."""
    found = [finding for report in reports for finding in report.findings()]
    codes = Counter(finding.code for finding in found)
    assert codes["unknown_tool"] == codes["unparsable_arguments"] == 0
    assert {code for code in codes if code.startswith("schema_")} <= {"schema_enum", "schema_required", "schema_type"}
