"""Labelled sets and predictions are read strictly, with the line of whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from service.calibration.importers.published import guess_shape, import_labels
from service.calibration.labels import read_csv, read_labels
from service.calibration.predictions import group_by_judge, read_predictions
from service.calibration.report.excerpts import build_excerpt
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


SPANS = {
    "id": "x/1",
    "domain": "d",
    "model": "w",
    "source": "s",
    "payload": {"a": 1},
    "payload_id": "p1",
    "response": "It is 2.",
    "span_types": ["contradictory", "not_checkable"],
    "human": [{"annotator": "h1", "spans": [{"start": 0, "end": 2, "text": "It", "type": 1}]},
     {"annotator": "h2", "spans": [{"start": 6, "end": 7, "text": "2", "type": 0}]},
     {"annotator": "h1", "spans": [{"start": 6, "end": 7, "text": "2", "type": 0}]}],
    "judges": {"j": [{"start": 6, "end": 7, "text": "2", "type": 0}], "k": [],
     "l": [{"start": 0, "end": 2, "text": "It", "type": 2},
     {"start": 6, "end": 7, "text": "2", "type": 0, "reason": "3"}],
     "m": [{"start": 0, "end": 2, "text": "It", "type": 1}]},
}  # fmt: skip
THUMB = {
    "id": "t/1",
    "context": [{"role": "agent", "text": "Hello."}, {"role": "user", "text": "an espresso"},
     {"role": "agent", "api": {"find": {"query": "espresso"}}},
     {"role": "api", "response": {"find": ["e1"], "none": 1}}],
    "conversation_id": "d1",
    "generation": {"role": "agent", "api": {"find": {"query": "espresso"}}},
    "human_reward": 0.0,
}  # fmt: skip
DECISION = {
    "uuid": "u",
    "source_id": "q1",
    "question": "?",
    "tools": [],
    "answers": {"tool_call": '{"name": "f", "arguments": {"a": 1}}', "direct": "Yes."},
    "correct_answer": "direct",
}


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Help."},
    {"role": "user", "content": "?"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function",
     "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "1"},
    {"role": "assistant", "content": "Two."},
]  # fmt: skip
PROCESS: dict[str, Any] = {
    "id": "d/1",
    "domain": "d",
    "group": "q",
    "final": -1,
    "steps": {"4": -1, "2": 0},
    "judges": {"m": {"final": 1, "steps": {"2": 0, "4": -1}}, "n": {"final": 0, "steps": {"2": 1, "4": None}},
     "o": None},
    "messages": MESSAGES,
    "tools": [],
}  # fmt: skip
FAILED: dict[str, Any] = {
    "task_id": 1,
    "messages": MESSAGES,
    "failures": [{"message": 5, "category": "Invalid Invocation", "why": "so"}],
    "root_cause": 5,
}


def test_spans_of_annotators_and_judges() -> None:
    """One annotator's first word counts once. A judge's value falls with the spans it found, and with how grave they are."""
    found = import_labels([json.dumps(SPANS)])
    (one,) = found.labels.items
    assert [(label.annotator, label.label) for label in one.labels] == [("h1", True), ("h2", False)]
    assert (one.group, one.stratum, one.step, one.origin) == ("p1", "d/w", "integrate", "human")
    assert {(said.model, said.raw, said.reason) for said in found.predictions} == {
        ("j", 0.5, "'2': no reason"),
        ("k", 1.0, ""),
        ("l", 1 / (2 + 0.5**1.5), "'2': 3; 'It': no reason"),
        ("m", 1 / (1 + 0.5**1.5), "'It': no reason"),
    }
    strict = import_labels([json.dumps(SPANS)], errors="ungrounded")
    assert [label.label for label in strict.labels.items[0].labels] == [False, False]
    assert [said.raw for said in strict.predictions] == [0.5, 1.0, 1 / (2 + 0.5**1.5), 0.5]


KEY = {
    "id": "simple_1",
    "category": "simple_python",
    "question": [[{"role": "user", "content": "Area of 3 by 4?"}]],
    "function": [{"name": "area", "parameters": {"type": "dict", "properties": {}}}],
    "possible_answer": [{"area": {"w": [3], "h": [4, 4.0], "unit": ["", "m"]}}],
}


def error(sentence: int, tokens: str, start: int, end: int, kind: str, correction: str = "") -> dict[str, str]:
    place = {"SENTENCE_ID": str(sentence), "SENT_TOKEN_START": str(start), "SENT_TOKEN_END": str(end)}
    return {**place, "TOKENS": tokens, "TYPE": kind, "CORRECTION": correction}


BOX = {
    "id": "t/1",
    "payload": {"home_name": "Reds", "summary": "told in words"},
    "response": "The Reds won 9 - 7 . They led by six .",
    "errors": [error(1, "9 -", 4, 5, "NUMBER", "8"), error(2, "led", 2, 2, "NOT_CHECKABLE")],
}
TALK = {
    "conversation_id": "c1",
    "suites_used": ["Mail"],
    "conversation": [{"role": "user", "text": "Mail Bo."},
     {"role": "assistant", "text": "Sent.", "apis": [{"request": {"api_name": "Send", "parameters": {"to": "Bo"}},
     "response": {"id": 1}, "exception": None}, {"request": {"api_name": "Log", "parameters": {}}, "response": None,
     "exception": "full"}]}],
}  # fmt: skip
BANK = {
    "file": "a/b.jsonl",
    "turns": [{"role": "User", "text": "Add it."}, {"role": "AI", "text": "I will."},
     {"role": "API", "api_name": "Add", "param_dict": {"n": 1}, "result": {"output": "ok", "exception": None}}],
}  # fmt: skip


def test_a_key_tells_whether_to_call() -> None:
    none, call = sorted(import_labels([json.dumps(KEY)]).labels.items, key=lambda one: one.passes)
    assert (none.id, call.id, none.group, none.stratum) == (
        "simple_1/none",
        "simple_1/call",
        "simple_1",
        "simple_python",
    )
    assert call.trace is not None
    assert call.trace["calls"] == [{"area": {"w": 3, "h": 4}}]
    assert {one.origin for one in (none, call)} == {"gold"}
    (declines,) = import_labels([json.dumps({**KEY, "category": "irrelevance", "possible_answer": None})]).labels.items
    assert declines.passes
    (unkeyed,) = import_labels(
        [json.dumps({**KEY, "category": "live_relevance", "possible_answer": None})]
    ).labels.items
    assert not unkeyed.passes


def test_a_text_with_errors_is_judged_sentence_by_sentence() -> None:
    first, second = import_labels([json.dumps(BOX)]).labels.items
    assert (first.answer, first.passes, first.labels[0].note) == ("The Reds won 9 - 7 .", False, "NUMBER: 9 - -> 8")
    assert (second.answer, second.passes, second.payload) == ("They led by six .", True, {"home_name": "Reds"})
    assert {one.group for one in (first, second)} == {"t/1"}
    strict = import_labels([json.dumps(BOX)], errors="ungrounded").labels.items
    assert [one.passes for one in strict] == [False, False]


def test_dialogues_are_traces_without_fault() -> None:
    call, text = import_labels([json.dumps(TALK)]).labels.items
    assert (call.criterion, text.criterion) == ("argument_plausibility", "result_groundedness")
    assert text.family == "Mail"
    trace = build_excerpt(text)
    assert (trace.question, trace.answer) == ("Mail Bo.", "Sent.")
    assert json.loads(trace.payload) == [{"id": 1}, "full"]
    (alone,) = import_labels([json.dumps(BANK)]).labels.items  # nothing was said of the result
    assert (alone.id, alone.criterion, alone.passes, alone.origin) == (
        "a/b.jsonl",
        "argument_plausibility",
        True,
        "gold",
    )
    with pytest.raises(InputError, match="no labelled item"):
        import_labels([json.dumps({**BANK, "turns": BANK["turns"][:2]})])


def test_steps_of_runs() -> None:
    found = import_labels([json.dumps(PROCESS)])
    assert [(one.id, one.passes, one.run, one.position) for one in found.labels.items] == [
        ("d/1#2", True, "d/1", 2),
        ("d/1#4", False, "d/1", 4),
    ]
    assert [len(cast("list[object]", (one.trace or {})["messages"])) for one in found.labels.items] == [4, 5]
    assert [(one.id, one.model, one.raw) for one in found.predictions] == [
        ("d/1#2", "m", 0.5),
        ("d/1#2", "n", 1.0),
        ("d/1#4", "m", 0.0),
    ]
    failed = import_labels([json.dumps(FAILED), json.dumps({**FAILED, "task_id": 2, "failures": None})]).labels.items
    assert [(one.id, one.passes, one.labels[0].note) for one in failed] == [
        ("1#2", True, ""),
        ("1#4", False, "Invalid Invocation: so"),
    ]
    with pytest.raises(InputError, match="no labelled item"):  # a step that is none of the assistant's says nothing
        import_labels([json.dumps({**FAILED, "failures": [{**FAILED["failures"][0], "message": 4}]})])


def test_thumbs_and_decisions() -> None:
    (one,) = import_labels([json.dumps(THUMB)]).labels.items
    assert (one.trace or {})["events"] == [
        {"assistant": "Hello."},
        {"user": "an espresso"},
        {"call": {"name": "find", "arguments": {"query": "espresso"}}, "result": ["e1"]},
        {"call": {"name": "find", "arguments": {"query": "espresso"}}},
    ]
    assert (one.passes, one.group, one.family, one.step) == (False, "d1", "find", None)
    found = import_labels([json.dumps(DECISION)]).labels.items
    assert [(one.trace or {}).get("calls", (one.trace or {}).get("result")) for one in found] == [
        "Yes.",
        [{"f": {"a": 1}}],
    ]
    assert [(one.id, one.passes, one.group, one.origin) for one in found] == [
        ("u/direct", True, "q1", "gold"),
        ("u/tool_call", False, "q1", "gold"),
    ]


@pytest.mark.parametrize(
    ("row", "shape"),
    [
        (SPANS, "spans"),
        (THUMB, "thumbs"),
        (DECISION, "decisions"),
        (KEY, "answer_keys"),
        (BOX, "corrections"),
        (TALK, "tooltalk"),
        (BANK, "apibank"),
        (PROCESS, "process"),
        (FAILED, "failures"),
        (json.loads(GOOD), "callgrade"),
    ],
)
def test_the_shape_is_told_from_the_first_row(row: object, shape: str) -> None:
    assert guess_shape(["", json.dumps(row)]) == shape
    assert guess_shape([]) == "callgrade"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({**SPANS, "span_types": ["odd"]}, "none of the span types"),
        ({name: value for name, value in SPANS.items() if name != "payload_id"}, "'payload_id' is missing"),
        ({**SPANS, "human": []}, "at least 1 item"),
        ({**THUMB, "human_reward": 0.5}, "0 or 1, not 0.5"),
        ({**DECISION, "correct_answer": "none"}, "not among the answers"),
        ({**DECISION, "answers": {"tool_call": "{}", "direct": "Yes."}}, "tool_call names no tool"),
        ({**DECISION, "answers": {"tool_call": "f()", "direct": "Yes."}}, "tool_call is not JSON"),
        ({**SPANS, "human": [3]}, "not of the shape of spans"),
        ({**KEY, "id": "simple_2", "possible_answer": 3}, "not of the shape of answer_keys"),
        ({**BOX, "response": "The Reds won ."}, "'9 -' does not stand at tokens 4 to 5 of sentence 1"),
        ({name: value for name, value in TALK.items() if name != "suites_used"}, "'suites_used' is missing"),
        ({**BANK, "turns": [{"role": "API"}]}, "'result' is missing"),
    ],
)
def test_a_row_of_another_shape_is_told_with_its_line(row: object, why: str) -> None:
    first = next(one for one in (SPANS, THUMB, DECISION, KEY, BOX, TALK, BANK) if one.keys() >= set(row) - {"x"})  # pyright: ignore
    with pytest.raises(InputError) as refused:
        import_labels([json.dumps(first), json.dumps(row)])
    assert refused.value.problems[0].path.startswith("line 2")
    assert why in refused.value.problems[0].message


def test_predictions_may_stand_among_the_labels() -> None:
    said = '{"id": "a", "criterion": "c", "judge": "j", "model": "m", "raw": 0.5}'
    payload = GOOD.replace('"group"', '"payload": {"raw": 1}, "group"')  # a field of what was judged is none of ours
    found = import_labels([said, "", payload])
    assert ([one.id for one in found.labels.items], [one.raw for one in found.predictions]) == (["a"], [0.5])
    for bad, at in [(said.replace("0.5", "7"), "line 2: /raw"), ('{"raw": ', "line 2")]:
        with pytest.raises(InputError) as refused:
            import_labels([GOOD, bad])
        assert [p.path for p in refused.value.problems] == [at]
