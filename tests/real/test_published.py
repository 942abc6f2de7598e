"""Published sets become our own: spans of people and judges, and labelled steps of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from service.calibration.predictions import JudgedSet, read_judged_set
from service.registry import Registry
from tests.real.published import OTHER_SPAN_VALUE, main, read_published

SPANS: dict[str, Any] = {
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
    "judges": {
        "j": [{"start": 6, "end": 7, "text": "2", "type": 0}],
        "k": [],
        "l": [
            {"start": 0, "end": 2, "text": "It", "type": 2},
            {"start": 6, "end": 7, "text": "2", "type": 0, "reason": "3"},
        ],
        "m": [{"start": 0, "end": 2, "text": "It", "type": 1}],
    },
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Help."},
    {"role": "user", "content": "?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "1"},
    {"role": "assistant", "content": "Two."},
]
PROCESS: dict[str, Any] = {
    "id": "d/1",
    "domain": "d",
    "group": "q",
    "final": -1,
    "steps": {"4": -1, "2": 0},
    "judges": {
        "m": {"final": 1, "steps": {"2": 0, "4": -1}},
        "n": {"final": 0, "steps": {"2": 1, "4": None}},
        "o": None,
    },
    "messages": MESSAGES,
    "tools": [],
}


def read(row: dict[str, Any]) -> JudgedSet:
    return read_published([json.dumps(row)], source="s")


def test_spans_of_annotators_and_judges() -> None:
    """One annotator's first word counts once. A judge's value falls with the spans it found, and with how grave they are."""
    found = read(SPANS)
    (one,) = found.labels.items
    assert [(label.annotator, label.label) for label in one.labels] == [("h1", True), ("h2", False)]
    assert (one.group, one.stratum, one.step, one.origin) == ("p1", "d/w", "integrate", "human")
    assert {(said.model, said.raw, said.reason) for said in found.predictions} == {
        ("j", 0.5, "'2': no reason"),
        ("k", 1.0, ""),
        ("l", 1 / (2 + 0.5**1.5), "'2': 3; 'It': no reason"),
        ("m", 1 / (1 + 0.5**1.5), "'It': no reason"),
    }


def test_what_a_recorded_judge_doubts_is_worth_what_ours_calls_unsupported() -> None:
    assert Registry().judges["result_groundedness"].scale["unsupported"].value == OTHER_SPAN_VALUE


def test_steps_of_runs() -> None:
    found = read(PROCESS)
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


@pytest.mark.parametrize("row", [SPANS, PROCESS])
def test_what_is_written_is_the_same_set(
    row: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.jsonl").write_text(json.dumps(row), "utf-8")
    main(tmp_path / "set.jsonl")
    again, found = read_judged_set(capsys.readouterr().out.splitlines()), read(row)
    assert (again.labels.items, again.predictions) == (found.labels.items, found.predictions)
