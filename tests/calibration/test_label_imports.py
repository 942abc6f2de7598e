"""Labels of annotation tools: who said what of which item, what is kept apart, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.calibration.label_imports import ImportedLabels, Mapped, import_labels
from service.calibration.labels import read_labels
from service.cli import main
from service.errors import InputError
from tests.tables import read_yaml

CASES: list[dict[str, Any]] = read_yaml(Path(__file__).parents[1] / "data" / "calibration" / "imports.yaml")


def run(case: dict[str, Any]) -> ImportedLabels:
    rows = [(f"line {n}", one) for n, one in enumerate(case["records"], 1)]
    return import_labels(rows, Mapped("result_groundedness", **case.get("options", {})), {})


def summarize(items: list[dict[str, Any]]) -> list[Any]:
    return [
        [one["id"], one["criterion"], {label["annotator"]: label["label"] for label in one["labels"]}] for one in items
    ]


@pytest.mark.parametrize("case", [one for one in CASES if "refused" not in one], ids=lambda one: one["id"])
def test_labels_are_read_from_exports(case: dict[str, Any]) -> None:
    found: Any = run(case)
    assert summarize(found.human) == case["human"]
    assert summarize(found.weak) == case.get("weak", [])
    assert found.left_out.total() == case.get("left_out", 0)
    for one in found.human:
        assert [name for name in ("trace", "payload", "answer") if name in one] == case.get("shown", [])
    assert len(read_labels(map(json.dumps, found.human)).items) == len(found.human)
    assert all(one["origin"] == "weak" for one in found.weak)


@pytest.mark.parametrize("case", [one for one in CASES if "refused" in one], ids=lambda one: one["id"])
def test_what_says_neither_is_refused_at_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"line 1") as found:
        run(case)
    assert case["refused"] in str(found.value)


def test_the_command_joins_traces_by_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces, table, out, weak = (tmp_path / name for name in ("logs.jsonl", "labels.csv", "out.jsonl", "weak.jsonl"))
    trace = {"id": "t1", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
    traces.write_text(json.dumps(trace))
    table.write_text("trace_id,who,verdict\nt1,ana,pass\nt2,ana,fail\n")
    args = ["--columns", "who=annotator", "--traces", str(traces), "--weak", str(weak), "--out", str(out)]
    assert main(["calibrate", "import", str(table), *args]) == 0
    items = [json.loads(line) for line in out.read_text().splitlines()]
    assert [("trace" in one, one["labels"]) for one in items] == [
        (True, [{"annotator": "ana", "label": True}]),
        (False, [{"annotator": "ana", "label": False}]),
    ]
    said = capsys.readouterr().err
    assert "read as: a table (2 records)" in said
    assert "1 item without a trace, so no judge can be asked" in said
    assert not weak.exists()


def test_a_column_for_something_that_is_not_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("trace_id,who,verdict\nt1,ana,pass\n")
    assert main(["calibrate", "import", str(table), "--columns", "who=person", "--out", str(tmp_path / "out")]) == 4
    assert "who=person: expected one of item, label, annotator" in capsys.readouterr().err


def test_weak_labels_are_written_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export, out, weak = (tmp_path / name for name in ("scores.json", "out.jsonl", "weak.jsonl"))
    score = {"traceId": "t1", "name": "thumb", "value": 1, "source": "API"}
    export.write_text(json.dumps({"data": [score]}))
    assert main(["calibrate", "import", str(export), "--out", str(out), "--weak", str(weak)]) == 0
    assert (out.read_text(), json.loads(weak.read_text())["origin"]) == ("", "weak")
    assert main(["calibrate", "import", str(export), "--out", str(out)]) == 5
    assert "--weak FILE keeps them" in capsys.readouterr().err
