"""Labelled sets and predictions are read strictly, with the line of whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from service.calibration.labels import read_csv, read_labels
from service.calibration.predictions import group_by_judge, read_judged_set, read_predictions
from service.errors import InputError
from tests.calibration.label_sets import item
from tests.tables import read_yaml

DATA = Path(__file__).parents[1] / "data" / "calibration"
GOOD = '{"id": "a", "criterion": "c", "group": "g", "labels": [{"annotator": "x", "label": 1}]}'
SAID = '{"id": "a", "criterion": "c", "raw": 0.5, "model": "m"}'


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


HEAD = "id,criterion,group,annotator,label"
REFUSED: list[tuple[str, list[str], str, str]] = [
    *[("labels", [case["line"]], case["at"], case["why"]) for case in read_yaml(DATA / "refused_labels.yaml")],
    ("labels", [GOOD, GOOD], "line 2", "before, in line 1"),
    ("labels", [], "labels", "no labelled item"),
    ("labels", ["", " "], "labels", "no labelled item"),
    ("table", [], "line 1", "no column id"),
    ("table", ["id,criterion,group,annotator"], "line 1", "no column label"),
    ("table", [f"{HEAD},colour"], "line 1", "unknown columns: colour"),
    ("table", [f"{HEAD},id"], "line 1", "twice"),
    ("table", [HEAD], "labels", "no labelled item"),
    ("table", [HEAD, "a,c,g,x"], "line 2", "4 cells, but 5 columns"),
    ("table", [HEAD, "a,c,g,x,1", "a,c,h,y,1"], "line 3: /group", "differs from line 2"),
    ("table", [HEAD, "a,c,g,x,1", "a,c,g,x,0"], "line 2", "two labels"),
    ("table", [HEAD, "a,c,g,x,7"], "line 2: /labels/0/label", "true or false"),
    ("table", [HEAD, 'a,c,g,x,"1'], "line 2", "not CSV"),
    ("predictions", [SAID.replace("0.5", "1.5")], "line 1: /raw", "expected at most 1.0"),
    ("predictions", [SAID.replace("0.5", "NaN")], "line 1", "not valid JSON"),
    ("predictions", [SAID, SAID], "line 2", "sample 0 of this judge in line 1"),
    ("predictions", [SAID.replace("raw", "score")], "line 1: /raw", "required"),
]
READ: dict[str, Callable[[list[str]], object]] = {
    "labels": read_labels,
    "table": lambda lines: read_csv("\n".join(lines)),
    "predictions": read_predictions,
}


@pytest.mark.parametrize(("kind", "lines", "at", "why"), REFUSED)
def test_what_cannot_be_read_is_named_with_its_line(kind: str, lines: list[str], at: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        READ[kind](lines)
    first, *others = refused.value.problems
    assert (first.path, why in first.message, kind == "predictions" or others == []) == (at, True, True)


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
