"""Labelled sets and predictions are read strictly, with the line of whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from service.calibration.labels import read_csv, read_labels
from service.calibration.predictions import group_by_judge, read_judged_set, read_predictions
from service.errors import InputError
from tests.calibration.label_sets import item

REFUSED = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "calibration" / "refused_labels.yaml").read_text("utf-8")
)
GOOD = '{"id": "a", "criterion": "c", "group": "g", "labels": [{"annotator": "x", "label": 1}]}'


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["line"][:60])
def test_a_line_that_cannot_be_read(case: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        read_labels([case["line"]])
    assert (refused.value.problems[0].path, len(refused.value.problems)) == (case["at"], 1)
    assert case["why"] in refused.value.problems[0].message


@pytest.mark.parametrize(
    ("lines", "at", "why"),
    [([GOOD, GOOD], "line 2", "before, in line 1"), ([], "labels", "no labelled item"), (["", " "], "labels", "no")],
)
def test_a_set_that_cannot_be(lines: list[str], at: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        read_labels(lines)
    assert refused.value.problems[0].path == at
    assert why in refused.value.problems[0].message


@pytest.mark.parametrize(
    ("given", "want"), [(1, True), (0, False), (True, True), ("pass", True), ("Fail", False), ("0", False)]
)
def test_the_spellings_of_a_label(given: object, want: bool) -> None:
    line = json.dumps({**json.loads(GOOD), "labels": [{"annotator": "x", "label": given}]})
    assert read_labels([line]).items[0].labels[0].label is want


@pytest.mark.parametrize(
    ("labels", "want"),
    [((True,), True), ((True, False), True), ((False, True), False), ((False, True, True), True)],
)
def test_most_annotators_decide_and_the_first_where_they_are_even(labels: tuple[bool, ...], want: bool) -> None:
    assert item(0, *labels).passes is want


TABLE = """id,criterion,group,annotator,label,note,step
a,c,g1,ann,pass,"fine, really",integrate
a,c,g1,bob,0,,integrate
b,c,g2,ann,1,,
"""


def test_a_table_is_the_same_set() -> None:
    found = read_csv(TABLE)
    assert [(one.id, one.step, [label.annotator for label in one.labels]) for one in found.items] == [
        ("a", "integrate", ["ann", "bob"]),
        ("b", None, ["ann"]),
    ]
    assert found.items[0].labels[0].note == "fine, really"
    assert found.lines == {("a", "c"): 2, ("b", "c"): 4}


@pytest.mark.parametrize(
    ("table", "at", "why"),
    [
        ("", "line 1", "no column id"),
        ("id,criterion,group,annotator\n", "line 1", "no column label"),
        ("id,criterion,group,annotator,label,colour\n", "line 1", "unknown columns: colour"),
        ("id,criterion,group,annotator,label,id\n", "line 1", "twice"),
        ("id,criterion,group,annotator,label\na,c,g,x\n", "line 2", "4 cells, but 5 columns"),
        ("id,criterion,group,annotator,label\na,c,g,x,1\na,c,h,y,1\n", "line 3: /group", "differs from line 2"),
        ("id,criterion,group,annotator,label\na,c,g,x,1\na,c,g,x,0\n", "line 2", "two labels"),
        ("id,criterion,group,annotator,label\na,c,g,x,7\n", "line 2: /labels/0/label", "true or false"),
        ('id,criterion,group,annotator,label\na,c,g,x,"1\n', "line 2", "not CSV"),
        ("id,criterion,group,annotator,label\n", "labels", "no labelled item"),
    ],
)
def test_a_table_that_cannot_be_read(table: str, at: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        read_csv(table)
    assert refused.value.problems[0].path == at
    assert why in refused.value.problems[0].message


SAID = '{"id": "a", "criterion": "c", "raw": 0.5, "model": "m"}'


@pytest.mark.parametrize(
    ("lines", "at", "why"),
    [
        ([SAID.replace("0.5", "1.5")], "line 1: /raw", "expected at most 1.0"),
        ([SAID.replace("0.5", "NaN")], "line 1", "not valid JSON"),
        ([SAID, SAID], "line 2", "sample 0 of this judge in line 1"),
        ([SAID.replace("raw", "score")], "line 1: /raw", "required"),
    ],
)
def test_a_prediction_that_cannot_be_read(lines: list[str], at: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        read_predictions(lines)
    assert refused.value.problems[0].path == at
    assert why in refused.value.problems[0].message


def test_predictions_go_to_the_judge_that_made_them() -> None:
    other = SAID.replace('"m"', '"n"')
    again = SAID.replace('"model"', '"sample": 1, "model"').replace("0.5", "0.75")
    found = group_by_judge(read_predictions([again, other, SAID]))
    assert [(one.name, dict(one.raw)) for one in found] == [
        ("m", {("a", "c"): (0.5, 0.75)}),
        ("n", {("a", "c"): (0.5,)}),
    ]


def test_predictions_may_stand_among_the_labels() -> None:
    said = '{"id": "a", "criterion": "c", "judge": "j", "model": "m", "raw": 0.5}'
    payload = GOOD.replace('"group"', '"payload": {"raw": 1}, "group"')  # a field of what was judged is none of ours
    found = read_judged_set([said, "", payload])
    assert ([one.id for one in found.labels.items], [one.raw for one in found.predictions]) == (["a"], [0.5])
    for bad, at in [(said.replace("0.5", "7"), "line 2: /raw"), ('{"raw": ', "line 2")]:
        with pytest.raises(InputError) as refused:
            read_judged_set([GOOD, bad])
        assert [p.path for p in refused.value.problems] == [at]
