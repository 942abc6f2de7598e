"""Labelled sets and predictions are read strictly, with the line of what is wrong; other sets, and the one that comes along."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.calibration.label_imports import ImportedLabels, Mapped, import_labels
from service.calibration.labels import LabelledItem, LabelledSet, read_csv, read_labels
from service.calibration.predictions import read_judged_set, read_predictions
from service.cli import main
from service.errors import InputError
from tests.calibration.label_sets import item
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "calibration" / "refused_rows.yaml")

DATA = Path(__file__).parents[1] / "data" / "calibration"
GOOD = '{"id": "a", "criterion": "c", "group": "g", "labels": [{"annotator": "x", "label": 1}]}'


@pytest.mark.parametrize(
    ("given", "want"), [(1, True), (0, False), (True, True), ("pass", True), ("Fail", False), ("0", False)]
)
def test_the_spellings_of_a_label(given: object, want: bool) -> None:
    line = json.dumps({**json.loads(GOOD), "labels": [{"annotator": "x", "label": given}]})
    assert read_labels([line]).items[0].labels[0].label is want


@pytest.mark.parametrize(
    ("labels", "want"), [((True,), True), ((True, False), True), ((False, True), False), ((False, True, True), True)]
)
def test_most_annotators_decide_and_the_first_where_they_are_even(labels: tuple[bool, ...], want: bool) -> None:
    assert item(0, *labels).passes is want


READ: dict[str, Callable[[list[str]], object]] = {
    "labels": read_labels,
    "table": lambda lines: read_csv("\n".join(lines)),
    "predictions": read_predictions,
}


@pytest.mark.parametrize(("kind", "lines", "at", "why"), TABLES["rows"])
def test_what_cannot_be_read_is_named_with_its_line(kind: str, lines: list[str], at: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        READ[kind](lines)
    first, *others = refused.value.problems
    assert (first.path, why in first.message, kind == "predictions" or others == []) == (at, True, True)


def test_predictions_may_stand_among_the_labels() -> None:
    said = '{"id": "a", "criterion": "c", "judge": "j", "model": "m", "raw": 0.5}'
    payload = GOOD.replace('"group"', '"payload": {"raw": 1}, "group"')  # a field of what was judged is none of ours
    found = read_judged_set([said, "", payload])
    assert ([one.id for one in found.labels.items], [one.raw for one in found.predictions]) == (["a"], [0.5])
    for bad, at in [(said.replace("0.5", "7"), "line 2: /raw"), ('{"raw": ', "line 2")]:
        with pytest.raises(InputError) as refused:
            read_judged_set([GOOD, bad])
        assert [p.path for p in refused.value.problems] == [at]


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


def test_the_command_names_ties_that_nobody_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "labels.csv"
    rows = ["trace_id,annotator,verdict", "t1,ana,pass", "t1,ben,fail", "t2,ana,pass", "t2,ben,pass", "t3,ana,fail"]
    table.write_text("\n".join(rows) + "\n")
    assert main(["calibrate", "import", str(table), "--out", str(tmp_path / "out.jsonl")]) == 0
    told = capsys.readouterr().err
    assert "1 item with as many passes as fails, whose first label counts unless one decides: t1" in told


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


STARTER = Path(__file__).parents[2] / "calibration" / "labels" / "starter.jsonl"


@pytest.fixture(scope="module")
def starter() -> LabelledSet:
    return read_labels(STARTER.read_text("utf-8").splitlines(), source=STARTER.name)


def called(item: LabelledItem) -> list[str]:
    messages = (item.trace or {})["messages"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return [call["function"]["name"] for call in calls]


def test_a_family_of_near_misses_has_each_tool_taken_for_another(starter: LabelledSet) -> None:
    """A scenario of the family has a right and a wrong tool, both on offer in it."""
    by_group: dict[str, dict[bool, set[str]]] = defaultdict(lambda: {True: set(), False: set()})
    for one in starter.items:
        if one.step == "select" and one.family == "payments":
            by_group[one.group][one.passes] |= set(called(one))
    assert len(by_group) == 5
    for group, tools in by_group.items():
        assert tools[True], group
        assert tools[False], group
        assert not tools[True] & tools[False], group
