"""What calls and cases took, as their traces say, in reports, summaries and assertions."""

from __future__ import annotations

import json
from typing import Any

import pytest

import service
from service import InputError
from service.core.report import Report
from service.engine import report_json
from service.reporting.summaries import read_report, summarize_reports


def run(name: str, start: int, milliseconds: int) -> dict[str, Any]:
    times = {"start_time": start, "end_time": start + milliseconds * 10**6}
    return {"name": name, "attributes": {"tool.name": name, "input.value": "{}", "output.value": "1"}, **times}


def score(durations: list[int], tokens: int | None = None) -> Report:
    start = 1_700_000_000_000_000_000
    spans = [run("find-order", start + n * 10**9, duration) for n, duration in enumerate(durations)]
    messages = [{"role": "assistant", "content": "Done"}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages}
    reply = {"name": "chat", "start_time": start + 10**11, "end_time": start + 10**11 + 1, "attributes": attributes}
    if tokens is not None:
        attributes["gen_ai.usage.input_tokens"] = tokens
    return service.score({"trace": {"format": "spans", "spans": [*spans, reply]}, "judges": "off"})


REPORTS = [score([100, 200], 10), score([300], 30), score([400, 1000], 20)]
PLAIN = service.score(
    {"trace": {"format": "callgrade", "events": [{"user": "Hi"}, {"assistant": "Hi"}]}, "judges": "off"}
)

ASSERTIONS = [
    ("p50 duration of find-order <= 0.3 s", "passed"),
    ("p95 duration of find-order <= 0.5 s", "failed"),
    ("max duration of find-order == 1 s", "passed"),
    ("p95 duration of find-order <= 800 ms", "failed"),
    ("median duration of find-order <= 0.3 s", "passed"),
    ("p95 duration of other <= 800 ms", "error"),
    ("p99 cost of find-order < $2", "error"),
    ("total input tokens == 60", "passed"),
    ("p90 input tokens <= 30", "passed"),
    ("average output tokens < 5", "error"),
    ("total cost < 1", "error"),
]


@pytest.mark.parametrize(("assertion", "status"), ASSERTIONS)
def test_what_was_taken_can_be_asserted_on(assertion: str, status: str) -> None:
    gate = summarize_reports(REPORTS, assertions=[assertion]).gate
    assert gate is not None
    assert [one.status for one in gate.results] == [status]


SILENT = [  # cases that do not say, assertion, what comes of it
    (3, "total input tokens == 60 of measured", "passed"),
    (3, "total input tokens >= 60", "passed"),
    (3, "total input tokens <= 1000", "undecided"),
    (3, "total input tokens < 60", "failed"),
    (1, "p95 input tokens <= 1000", "undecided"),
    (2, "p90 input tokens <= 1000", "undecided"),
    (1, "median input tokens <= 30", "passed"),
    (1, "median input tokens <= 20", "undecided"),
    (1, "min input tokens <= 10", "passed"),
    (1, "min input tokens >= 10", "undecided"),
    (4, "total input tokens >= 60", "error"),
]


@pytest.mark.parametrize(("silent", "assertion", "status"), SILENT)
def test_cases_that_do_not_say_may_have_taken_anything(silent: int, assertion: str, status: str) -> None:
    gate = summarize_reports([*REPORTS, *[PLAIN] * silent], assertions=[assertion]).gate
    assert gate is not None
    assert (gate.results[0].status, gate.results[0].unmeasured) == (status, silent)


def test_a_summary_has_durations_by_tool() -> None:
    (found,) = summarize_reports(REPORTS).usage
    assert (found.tool, found.calls, found.cost_usd) == ("find-order", 5, None)
    taken = found.duration_s
    assert taken is not None
    assert (taken.known, taken.p50, taken.p95) == (5, pytest.approx(0.3), pytest.approx(0.88))
    assert summarize_reports([PLAIN]).usage == ()


def test_a_report_says_what_was_taken_and_null_where_nobody_knows() -> None:
    known, unknown = (json.loads(report_json(report)) for report in (REPORTS[1], PLAIN))
    assert known["steps"][0]["usage"]["duration_s"] == 0.3
    assert known["usage"]["input_tokens"] == 30
    assert unknown["usage"] is None
    assert read_report(known) == REPORTS[1]
    assert read_report(unknown) == PLAIN


@pytest.mark.parametrize(
    ("assertion", "message"),
    [
        ("p95 duration of find-order <= 800", "p95 duration of find-order is in ms, s, min; not a bare number"),
        ("p95 cost < 3 ms", "p95 cost is in usd"),
        ("p95 latency < 3 ms", "not an assertion; expected"),
    ],
)
def test_a_unit_that_does_not_fit_is_an_error(assertion: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        summarize_reports(REPORTS, assertions=[assertion])
