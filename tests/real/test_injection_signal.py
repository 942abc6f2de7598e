"""How often texts are suspected: packaged attack strings by class, and real conversations and labelled sets as harmless.

The floors are a little below what was measured; the figures of a run are printed with `-s`. Most of the attack strings
are plain requests ("Explain the theory of relativity"), which only their place makes an attack: they are not found.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from service.core.injection.signals import find_suspicions
from service.core.trace import Step, ToolCall, ToolResult, Trace
from service.intake import read_trace
from tests.bulk import share

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]

HARMLESS = {
    "action_tm4coffee_cal": 2000,
    "calls_bfcl_v4_cal": 2407,
    "decide_when2call_cal": 150,
    "dialog_apibank_all": 263,
    "dialog_tooltalk_all": 50,
    "groundedness_d2teval_cal": 696,
    "groundedness_quintd1_train": 1976,
    "groundedness_rotowire_gsml_train": 60,
}


def show(*told: object) -> None:
    sys.stdout.write(" ".join(map(str, told)) + "\n")


def rows_of(shared_data: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def returned(content: Any) -> Trace:
    """A trace with one call, which returned this."""
    return Trace("t", "callgrade", (), (), (Step(0, 1, ToolCall("1", "read", {}), ToolResult(content)),), None, 1)


def test_attack_strings_by_class(shared_data: Path):
    rows = list(map(json.loads, (shared_data / "hostile" / "injections.jsonl").read_text("utf-8").splitlines()))
    all_of = Counter((row["source"], row["class"]) for row in rows)
    found = Counter((row["source"], row["class"]) for row in rows if find_suspicions(returned(row["text"])))
    for (source, sort), count in sorted(all_of.items()):
        show(source, sort, f"{found[source, sort]}/{count}")
    by_source = {source: sum(n for (of, _), n in found.items() if of == source) for source in ("bipia", "cyberseceval")}
    show(by_source)
    assert by_source["bipia"] >= 28
    assert by_source["cyberseceval"] >= 16
    assert found["cyberseceval", "few_shot_attack"] >= 4
    assert found["cyberseceval", "ignore_previous_instructions"] >= 5


def test_no_more_than_one_in_a_hundred_runs_is_suspected(shared_data: Path):
    tools = json.loads((shared_data / "tau_airline" / "tools.json").read_text("utf-8"))
    runs = rows_of(shared_data, "tau_airline/runs")
    traces = [read_trace({**run, "format": "tau", "tools": tools}) for run in runs]
    flagged = [found for found in map(find_suspicions, traces) if found]
    show("tau_airline", len(flagged), "of", len(traces), flagged)
    assert len(traces) == 100
    assert len(flagged) <= 1


@pytest.mark.parametrize("name", HARMLESS)
def test_no_more_than_one_row_in_a_hundred_is_suspected(shared_data: Path, name: str):
    rows = rows_of(shared_data, f"labels/{name}")
    assert len(rows) == HARMLESS[name]
    looked_at = share(rows, one_in=7)
    flagged = [found for found in (find_suspicions(returned(row)) for row in looked_at) if found]
    show(name, len(flagged), "of", len(looked_at), flagged)
    assert 100 * len(flagged) <= len(looked_at)
