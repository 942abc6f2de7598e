"""Labelled sets and predictions are read strictly, with the line of whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from service.calibrating.importers import guessed, imported
from service.calibrating.labels import read_csv, read_labels
from service.calibrating.predictions import by_judge, read_predictions
from service.errors import InputError
from tests.calibrating.label_sets import item

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


def test_every_bad_line_is_told_and_empty_ones_count() -> None:
    with pytest.raises(InputError) as refused:
        read_labels([GOOD, "", '{"id": "b"}', GOOD.replace('"a"', '"z"')])
    assert [p.path for p in refused.value.problems] == ["line 3: /criterion", "line 3: /labels", "line 3: /group"]


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


def test_items_are_in_the_order_of_their_keys_and_know_their_lines() -> None:
    found = read_labels([GOOD.replace('"a"', '"z"'), GOOD])
    assert [one.id for one in found.items] == ["a", "z"]
    assert found.lines == {("z", "c"): 1, ("a", "c"): 2}


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
        ([SAID.replace("0.5", "1.5")], "line 1: /raw", "less than or equal to 1"),
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
    found = by_judge(read_predictions([again, other, SAID]))
    assert [(one.name, dict(one.raw)) for one in found] == [
        ("m", {("a", "c"): (0.5, 0.75)}),
        ("n", {("a", "c"): (0.5,)}),
    ]


SPANS = {
    "id": "x/1",
    "domain": "d",
    "model": "w",
    "source": "s",
    "payload": {"a": 1},
    "payload_id": "p1",
    "response": "It is 2.",
    "span_types": ["contradictory", "not_checkable"],
    "human": [
        {"annotator": "h1", "spans": [{"start": 0, "end": 2, "text": "It", "type": 1}]},
        {"annotator": "h2", "spans": [{"start": 6, "end": 7, "text": "2", "type": 0}]},
        {"annotator": "h1", "spans": [{"start": 6, "end": 7, "text": "2", "type": 0}]},
    ],
    "judges": {"j": [{"start": 6, "end": 7, "text": "2", "type": 0}], "k": []},
}
THUMB = {
    "id": "t/1",
    "context": [{"role": "user", "text": "an espresso"}],
    "conversation_id": "d1",
    "generation": {"role": "agent", "api": {"find": {"query": "espresso"}}},
    "human_reward": 0.0,
}
DECISION = {
    "uuid": "u",
    "source_id": "q1",
    "question": "?",
    "tools": [],
    "answers": {"tool_call": "{}", "direct": "Yes."},
    "correct_answer": "direct",
}


def test_spans_of_annotators_and_judges() -> None:
    """One annotator's first word counts once. A judge's value falls with the spans it found."""
    found = imported([json.dumps(SPANS)])
    (one,) = found.labels.items
    assert [(label.annotator, label.label) for label in one.labels] == [("h1", True), ("h2", False)]
    assert (one.group, one.stratum, one.step, one.origin) == ("p1", "d/w", "integrate", "human")
    assert {(said.model, said.raw) for said in found.predictions} == {("j", 0.5), ("k", 1.0)}
    strict = imported([json.dumps(SPANS)], errors="ungrounded").labels.items[0]
    assert [label.label for label in strict.labels] == [False, False]


def test_thumbs_and_decisions() -> None:
    (one,) = imported([json.dumps(THUMB)]).labels.items
    assert (one.passes, one.group, one.family, one.step) == (False, "d1", "find", None)
    found = imported([json.dumps(DECISION)]).labels.items
    assert [(one.id, one.passes, one.group, one.origin) for one in found] == [
        ("u/direct", True, "q1", "gold"),
        ("u/tool_call", False, "q1", "gold"),
    ]


@pytest.mark.parametrize(
    ("row", "shape"), [(SPANS, "spans"), (THUMB, "thumbs"), (DECISION, "decisions"), (json.loads(GOOD), "callgrade")]
)
def test_the_shape_is_told_from_the_first_row(row: object, shape: str) -> None:
    assert guessed(["", json.dumps(row)]) == shape
    assert guessed([]) == "callgrade"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({**SPANS, "span_types": ["odd"]}, "none of the span types"),
        ({name: value for name, value in SPANS.items() if name != "payload_id"}, "'payload_id' is missing"),
        ({**SPANS, "human": []}, "at least 1 item"),
        ({**THUMB, "human_reward": 0.5}, "0 or 1, not 0.5"),
        ({**DECISION, "correct_answer": "none"}, "not among the answers"),
        ({**SPANS, "human": [3]}, "not of the shape of spans"),
    ],
)
def test_a_row_of_another_shape_is_told_with_its_line(row: object, why: str) -> None:
    first = next(one for one in (SPANS, THUMB, DECISION) if one.keys() >= set(row) - {"x"})  # pyright: ignore
    with pytest.raises(InputError) as refused:
        imported([json.dumps(first), json.dumps(row)])
    assert refused.value.problems[0].path.startswith("line 2")
    assert why in refused.value.problems[0].message
