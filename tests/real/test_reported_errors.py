"""Errors in the results of real tools: those of tau-bench's runs are found, and payloads and right dialogues have none."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.core.results.failures.marking import find_failure
from service.intake.reading import read_trace

pytestmark = pytest.mark.shared_data

Json = Any


def rows_of(shared_data: Path, name: str) -> Iterator[Json]:
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


RUNS = [("tau_airline/runs", 621, 63), ("tau_retail/runs_dev", 386, 19)]
"""How many results there are, and how many of them are errors, as read by hand: tau-bench begins these with `Error: `."""


@pytest.mark.parametrize(("name", "results", "errors"), RUNS)
def test_the_errors_of_real_runs_are_found(shared_data: Path, name: str, results: int, errors: int) -> None:
    """Read as Chat Completions, which has no mark for errors."""
    runs = [row["messages"] for row in rows_of(shared_data, name)]
    traces = [read_trace({"format": "openai", "messages": messages}) for messages in runs]
    returned = [step.result.content for trace in traces for step in trace.steps if step.result is not None]
    found = [content for content in returned if find_failure(content)]
    assert (len(returned), len(found)) == (results, errors)
    assert all(str(content).startswith("Error: ") for content in found)


PAYLOADS = ["groundedness_d2teval_cal", "groundedness_quintd1_train", "groundedness_rotowire_gsml_train"]


@pytest.mark.parametrize("name", PAYLOADS)
def test_no_payload_reports_an_error(shared_data: Path, name: str) -> None:
    assert [row["id"] for row in rows_of(shared_data, f"labels/{name}") if find_failure(row["payload"])] == []


def test_no_result_of_a_right_dialogue_reports_an_error(shared_data: Path) -> None:
    turns = [turn for row in rows_of(shared_data, "labels/dialog_apibank_all") for turn in row["turns"]]
    results = [turn["result"]["output"] for turn in turns if turn["role"] == "API"]
    said = [turn for row in rows_of(shared_data, "labels/dialog_tooltalk_all") for turn in row["conversation"]]
    results += [api["response"] for turn in said for api in turn.get("apis") or () if api["exception"] is None]
    assert len(results) > 700
    assert [result for result in results if find_failure(result)] == []
