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
