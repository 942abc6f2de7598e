"""`callgrade summarize --labels`: rates beside labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from service import report_json
from tests.cli.cli_run import Run
from tests.reporting.test_labelled_summary import reports


def written(folder: Path, labels: list[Any]) -> tuple[Path, Path]:
    told, given = folder / "reports.jsonl", folder / "labels.jsonl"
    told.write_bytes(b"".join([report_json(one) + b"\n" for one in reports()]))
    given.write_text("".join([json.dumps(one) + "\n" for one in labels]))
    return told, given


def label(number: int, passes: Any = "pass") -> dict[str, Any]:
    return {"trace_id": f"t{number}", "criterion": "argument_plausibility", "label": passes}


def test_rates_are_corrected(run: Run, tmp_path: Path) -> None:
    told, given = written(tmp_path, [label(0), label(1, True), label(2, "fail"), label(3)])
    found = run("summarize", told, "--labels", given, "--format", "json")
    assert found.code == 0, found.err
    [one] = json.loads(found.out)["corrected"]
    assert (one["labelled"], one["unlabelled"], one["naive"]) == (4, 4, 0.625)
    assert round(one["corrected"]["value"], 6) == 0.827778
    markdown = run("summarize", told, "--labels", given, "--format", "markdown").out
    assert "## Corrected by labels" in markdown
    assert "| argument\\_plausibility of reports | 4 | 4 | 0.625 |" in markdown
    assert "label next, at random: t" in markdown


def test_a_labelled_set_will_do_and_where_all_is_labelled_nothing_is_corrected(run: Run, tmp_path: Path) -> None:
    labels = [{"annotator": "ana", "label": "pass"}, {"annotator": "ben", "label": "fail"}]
    items = [{"id": f"t{n}", "criterion": "argument_plausibility", "group": "g", "labels": labels} for n in range(8)]
    told, given = written(tmp_path, [{**one, "payload": 1, "answer": "1"} for one in items])
    found = run("summarize", told, "--labels", given, "--format", "markdown").out
    assert "| argument\\_plausibility of reports | 8 | 0 |" in found
    assert "not corrected, because nothing is left to correct" in found


def test_without_labels_there_is_no_such_section(run: Run, tmp_path: Path) -> None:
    told, _ = written(tmp_path, [])
    assert "Corrected by labels" not in run("summarize", told, "--format", "markdown").out


def test_a_label_that_cannot_be_read_is_named(run: Run, tmp_path: Path) -> None:
    told, given = written(tmp_path, [label(0), label(1, "maybe")])
    found = run("summarize", told, "--labels", given)
    assert found.code != 0
    assert "labels.jsonl:2: /label" in found.err
