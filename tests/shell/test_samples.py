"""Several replies to one request in a file are several traces."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from service.intake.reading import TraceInput, guess_format, read_trace
from service.reading.places import RecordPlace, TraceRecord
from service.reading.records import split_samples

INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)
ASKED = {"messages": [{"role": "user", "content": "q"}]}
CHOICES = {"choices": [{"message": {"role": "assistant", "content": text}} for text in ("A", "B")]}
CANDIDATES = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}} for text in ("A", "B")]}
RECORDS: dict[str, dict[str, Any]] = {
    "openai": {**ASKED, **CHOICES},
    "exchange": {"request": ASKED, "response": CHOICES},
    "a batch's result": {"custom_id": "c", "response": {"status_code": 200, "body": CHOICES}},
    "litellm": {"litellm_call_id": "x", "call_type": "completion", **ASKED, "response": CHOICES},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "q"}]}], **CANDIDATES},
}


def split(value: dict[str, Any]) -> list[Any]:
    return [
        record.value
        for record in split_samples([TraceRecord(RecordPlace("f"), value)])
        if isinstance(record, TraceRecord)
    ]


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_each_reply_is_a_trace(record: dict[str, Any]) -> None:
    traces = [read_trace(INPUT.validate_python({"format": guess_format(one), **one})) for one in split(record)]
    assert [(trace.answer, trace.unread) for trace in traces] == [("A", ()), ("B", ())]


def test_a_request_around_a_trace_is_kept_and_each_has_an_id_of_its_own() -> None:
    wrapped = {"trace": {"id": "t", **RECORDS["openai"]}, "judges": "off"}
    assert [(one["judges"], one["trace"]["id"], one["trace"]["sample"]) for one in split(wrapped)] == [
        ("off", "t#0", 0),
        ("off", "t#1", 1),
    ]


def test_one_reply_and_one_that_was_chosen_are_left_alone() -> None:
    one, chosen = {**ASKED, "choices": CHOICES["choices"][:1]}, {**RECORDS["openai"], "sample": 1}
    assert (split(one), split(chosen)) == ([one], [chosen])
