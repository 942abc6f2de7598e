"""Spans that were made by hand: missing telemetry never counts against the model, and what tells nothing is refused."""

from __future__ import annotations

from typing import Any

import pytest

import service
from service.core.trace import Trace
from service.errors import InputError
from tests.intake.records import load

Span = dict[str, Any]


def read(spans: list[Span], **more: Any) -> Trace:
    return load({"format": "spans", "id": "one", "spans": spans} | more)


NOT_TOLD = [
    ({"gen_ai.tool.name": "f"}, None),
    ({"tool.name": "f"}, None),
    ({"tool.name": "f", "input.value": "__REDACTED__", "output.value": "__REDACTED__"}, None),
    ({"gen_ai.tool.name": "f", "gen_ai.tool.call.result": "r"}, "r"),
]


@pytest.mark.parametrize(("attributes", "content"), NOT_TOLD)
def test_content_that_was_not_captured_lowers_coverage_and_no_score(attributes: Span, content: str | None) -> None:
    schema = {"type": "object", "required": ["n"]}
    trace = {"format": "spans", "spans": [{"attributes": attributes}], "tools": [{"name": "f", "parameters": schema}]}
    call = read([{"attributes": attributes}]).steps[0]
    assert (call.call.captured, call.call.arguments, call.call.problem) == (False, None, None)
    assert (call.result and call.result.content) == content
    report = service.score({"trace": trace, "expected": {"calls": [{"tool": "f", "args": {"n": 1}}]}})
    causes = {name: getattr(outcome, "cause", None) for name, outcome in report.steps[0].outcomes.items()}
    assert causes["schema"] == "not_captured"
    assert causes["arguments"] == "not_captured"
    assert report.coverage is not None
    assert report.coverage < 1.0


def test_malformed_arguments_are_held_against_the_model() -> None:
    attributes = {"gen_ai.tool.name": "f", "gen_ai.tool.call.arguments": '{"n": }'}
    trace = {"format": "spans", "spans": [{"attributes": attributes}], "tools": [{"name": "f"}]}
    report = service.score({"trace": trace, "expected": {"calls": [{"tool": "f", "args": {"n": 1}}]}})
    assert [finding.code for finding in report.findings()] == ["unparsable_arguments"]
    assert report.verdict == "fail"


REFUSED: list[tuple[Any, str, str]] = [
    ({}, "", "no span"),
    ({"spans": []}, "", "no span"),
    ({"spans": [{"attributes": {"http.method": "GET"}}]}, "", "attributes of a model or a tool"),
    ({"resourceSpans": {}}, "/resourceSpans", "a list"),
    ({"resourceSpans": [1]}, "/resourceSpans/0", "an object"),
    ({"resourceSpans": [{"scopeSpans": [{"spans": [0]}]}]}, "/resourceSpans/0/scopeSpans/0/spans/0", "an object"),
    ({"spans": [{"attributes": {"gen_ai.output.messages": [{"parts": [{"type": "tool_call", "id": "1"}]}]}}]},
     "/spans/0", "a name"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "path", "words"), REFUSED)
def test_what_tells_nothing_is_refused(record: Any, path: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load({"format": "spans"} | record)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert words in problem.message


def test_parents_in_a_circle_hide_nothing() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    ring = [
        {"span_id": str(n), "parent_id": str((n + 1) % 3), "attributes": {"gen_ai.input.messages": messages}}
        for n in range(3)
    ]
    lone = [{"span_id": "9", "parent_id": "9", "attributes": {"gen_ai.input.messages": messages}}]
    assert [message.text for message in read(ring).messages] == ["Hi"]
    assert [message.text for message in read(lone).messages] == ["Hi"]


def test_many_alike_calls_and_runs_are_paired_in_order() -> None:
    many = 1_000
    calls = [{"type": "tool_call", "name": "f", "arguments": {"n": n}} for n in range(many)]
    model = {"attributes": {"gen_ai.output.messages": [{"role": "assistant", "parts": calls}]}}
    runs = [
        {"attributes": {"tool.name": "f", "input.value": {"m": n}, "output.value": n}, "start_time": n}
        for n in range(many)
    ]
    trace = read([model, *runs])
    assert [step.result and step.result.content for step in trace.steps] == list(range(many))
