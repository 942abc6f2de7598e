"""Spans: one conversation reads alike under every convention, and missing telemetry never counts against the model."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import service
from service.core.trace import Trace
from service.errors import InputError
from service.intake.reading import TraceInput, read_trace

DATA = Path(__file__).parents[1] / "data" / "traces"
SAID = json.loads((DATA / "same_conversation.json").read_text("utf-8"))["expected"]
INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)
EPOCH = 1_700_000_000_000_000_000

Span = dict[str, Any]


def read(spans: list[Span], **more: Any) -> Trace:
    return read_trace(INPUT.validate_python({"format": "spans", "id": "one", "spans": spans} | more))


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def history() -> Iterator[tuple[list[Any], Any, list[Any]]]:
    """List each answer of the model: its input, its output, and the steps that followed."""
    known: list[Any] = []
    for place, (role, words, _) in enumerate(SAID["messages"]):
        steps = [step for step in SAID["steps"] if step["message"] == place]
        said = {"role": role, "text": words, "calls": steps}
        if role == "assistant":
            yield list(known), said, steps
        known.append(said)
        known += [{"role": "tool", "step": step} for step in steps]


def genai_message(message: Any) -> Any:
    if message["role"] == "tool":
        step = message["step"]
        return {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": step["id"], "response": text(step["result"])}],
        }
    parts = [{"type": "text", "content": message["text"]}] if message["text"] else []
    calls = [
        {"type": "tool_call", "id": step["id"], "name": step["name"], "arguments": step["arguments"]}
        for step in message["calls"]
    ]
    return {"role": message["role"], "parts": [*parts, *calls]}


def genai_model(given: list[Any], said: Any) -> Span:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **tool} for tool in SAID["tools"]]),
        "gen_ai.input.messages": json.dumps([genai_message(message) for message in given]),
        "gen_ai.output.messages": json.dumps([genai_message(said)]),
    }


def genai_tool(step: Any) -> Span:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": step["name"],
        "gen_ai.tool.call.id": step["id"],
        "gen_ai.tool.call.arguments": json.dumps(step["arguments"]),
        "gen_ai.tool.call.result": text(step["result"]),
    }


def openinference_messages(prefix: str, messages: list[Any]) -> Iterator[tuple[str, Any]]:
    for n, message in enumerate(messages):
        base = f"{prefix}.{n}.message"
        yield f"{base}.role", message["role"]
        if message["role"] == "tool":
            yield f"{base}.tool_call_id", message["step"]["id"]
            yield f"{base}.content", text(message["step"]["result"])
            continue
        yield f"{base}.content", message["text"]
        for m, step in enumerate(message["calls"]):
            yield f"{base}.tool_calls.{m}.tool_call.id", step["id"]
            yield f"{base}.tool_calls.{m}.tool_call.function.name", step["name"]
            yield f"{base}.tool_calls.{m}.tool_call.function.arguments", json.dumps(step["arguments"])


def openinference_model(given: list[Any], said: Any) -> Span:
    tools = {
        f"llm.tools.{n}.tool.json_schema": json.dumps({"type": "function", "function": tool})
        for n, tool in enumerate(SAID["tools"])
    }
    return {
        "openinference.span.kind": "LLM",
        **tools,
        **dict(openinference_messages("llm.input_messages", given)),
        **dict(openinference_messages("llm.output_messages", [said])),
    }


def openinference_tool(step: Any) -> Span:
    return {
        "openinference.span.kind": "TOOL",
        "tool.name": step["name"],
        "input.value": json.dumps(step["arguments"]),
        "output.value": text(step["result"]),
    }


def conversation(model: Callable[[list[Any], Any], Span], tool: Callable[[Any], Span] | None) -> list[Span]:
    bare: list[Span] = []
    for given_, said, steps in history():
        bare.append(model(given_, said))
        bare += [tool(step) for step in steps] if tool else []
    return [
        {"name": f"s{n}", "start_time": EPOCH + 2 * n, "end_time": EPOCH + 2 * n + 1, "attributes": span}
        for n, span in enumerate(bare)
    ]


def wrapped(value: Any) -> Any:
    for cls, kind in ((bool, "boolValue"), (str, "stringValue"), (float, "doubleValue")):
        if isinstance(value, cls):
            return {kind: value}
    return {"intValue": str(value)}


def otlp(spans: list[Span]) -> Span:
    converted = [
        {
            "name": span["name"],
            "startTimeUnixNano": str(span["start_time"]),
            "endTimeUnixNano": str(span["end_time"]),
            "attributes": [{"key": key, "value": wrapped(value)} for key, value in span["attributes"].items()],
        }
        for span in spans
    ]
    return {"format": "spans", "id": "one", "resourceSpans": [{"scopeSpans": [{"spans": converted}]}]}


FORMS = {
    "GenAI": conversation(genai_model, genai_tool),
    "OpenInference": conversation(openinference_model, openinference_tool),
    "OpenInference's models with GenAI's tools": conversation(openinference_model, genai_tool),
    "messages alone, GenAI": conversation(genai_model, None),
    "messages alone, OpenInference": conversation(openinference_model, None),
}


def plain(trace: Trace) -> Any:
    steps = [
        (
            step.turn,
            step.message,
            step.call.id,
            step.call.name,
            step.call.arguments,
            step.call.captured,
            step.result and (step.result.content, step.result.is_error),
        )
        for step in trace.steps
    ]
    messages = [[message.role, message.text, message.turn] for message in trace.messages]
    tools = trace.tools and [(tool.name, tool.description, tool.parameters) for tool in trace.tools]
    return trace.id, tools, messages, steps, trace.answer, trace.turns, trace.state


WANTED = (
    "one",
    [(tool["name"], tool["description"], tool["parameters"]) for tool in SAID["tools"]],
    SAID["messages"],
    [
        (step["turn"], step["message"], step["id"], step["name"], step["arguments"], True, (step["result"], False))
        for step in SAID["steps"]
    ],
    SAID["answer"],
    SAID["turns"],
    None,
)


@pytest.mark.parametrize("name", FORMS)
def test_one_conversation_reads_alike_by_every_convention(name: str) -> None:
    assert plain(read(FORMS[name])) == WANTED
    assert plain(read_trace(INPUT.validate_python(otlp(FORMS[name])))) == WANTED


@given(name=st.sampled_from(sorted(FORMS)), seed=st.integers(0, 10**6))
def test_the_order_of_the_export_does_not_matter(name: str, seed: int) -> None:
    spans = list(FORMS[name])
    random.Random(seed).shuffle(spans)  # noqa: S311
    assert plain(read(spans)) == WANTED


def test_without_messages_the_calls_are_the_same() -> None:
    for tool in (genai_tool, openinference_tool):
        spans = [{"attributes": tool(step)} for step in SAID["steps"]]
        trace = read(spans)
        made = [(step.call.name, step.call.arguments, step.result and step.result.content) for step in trace.steps]
        assert made == [(step["name"], step["arguments"], step["result"]) for step in SAID["steps"]]


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
        read_trace(INPUT.validate_python({"format": "spans"} | record))
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
