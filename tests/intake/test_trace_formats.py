"""Every format against hand-written records: tests/data/traces has the inputs and the expected traces."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from service.core.trace import Step, ToolDef, Trace
from service.errors import InputError
from service.intake.reading import guess_format, read_gold, read_trace
from service.reading.request import read_request
from tests.intake.records import CASES, DATA, INPUT, load

SAME = json.loads((DATA / "same_conversation.json").read_text("utf-8"))
DEFAULTS = {
    "id": None,
    "tools": None,
    "messages": [],
    "steps": [],
    "answer": None,
    "state": None,
    "unread": [],
    "offers": {},
}

cases = pytest.mark.parametrize("case", [pytest.param(case, id=f"{name}: {case['name']}") for name, case in CASES])


def plain_tool(tool: ToolDef) -> dict[str, Any]:
    fields = {
        "description": tool.description,
        "parameters": tool.parameters,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
    }
    return {"name": tool.name} | {name: value for name, value in fields.items() if value not in ("", None, {})}


def plain_step(step: Step) -> dict[str, Any]:
    call, result = step.call, step.result
    plain: dict[str, Any] = {"turn": step.turn, "message": step.message, "name": call.name, "arguments": call.arguments}
    if call.id is not None:
        plain["id"] = call.id
    if call.arguments is None:
        plain |= {"problem": call.problem, "raw": call.raw}
    if result is not None:
        plain["result"] = result.content
    return plain | ({"is_error": True} if result is not None and result.is_error else {})


def plain(trace: Trace) -> dict[str, Any]:
    assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
    state = trace.state
    return {
        "id": trace.id,
        "tools": None if trace.tools is None else [plain_tool(tool) for tool in trace.tools],
        "messages": [[message.role, message.text, message.turn] for message in trace.messages],
        "steps": [plain_step(step) for step in trace.steps],
        "answer": trace.answer,
        "turns": trace.turns,
        "offers": {name: list(came) for name, came in trace.offers.items()},
        "unread": sorted([part.kind, part.path] for part in trace.unread if part.kind != "other"),
        "state": state and {"initial": state.initial, "final": state.final, "captured": sorted(state.captured)},
    }


@cases
def test_reads_as_written_in_the_table(case: dict[str, Any]) -> None:
    # Compared as JSON text, for which true is not 1 and 2.0 is not 2.
    wanted = DEFAULTS | case["expected"]
    trace = load(case["input"])
    parts = [tuple(part) for part in wanted["unread"]]
    wanted = wanted | {"unread": sorted([*part] for part in parts if part[0] != "other")}
    assert json.dumps(plain(trace), sort_keys=True) == json.dumps(wanted, sort_keys=True)
    assert {part for part in parts if part[0] == "other"} <= {
        (part.kind, part.path) for part in (*trace.unread, *trace.ignored)
    }


@cases
def test_keeps_the_record_whole_and_untouched(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case["input"])
    record = INPUT.validate_python(case["input"])
    trace = read_trace(record)
    assert trace.raw is record
    assert trace.raw == before == case["input"]
    assert trace.format == before["format"]


@cases
def test_gold(case: dict[str, Any]) -> None:
    assert read_gold(INPUT.validate_python(case["input"])) == case.get("gold")


@pytest.mark.parametrize("record", SAME["forms"], ids=lambda record: record["format"])
def test_one_conversation_reads_alike_in_every_form(record: dict[str, Any]) -> None:
    assert plain(load(record)) == DEFAULTS | SAME["expected"] | {"id": record["id"]}


def test_equal_tools_are_one() -> None:
    first, second = (load(copy.deepcopy(SAME["forms"][0])).tools for _ in range(2))
    other = copy.deepcopy(SAME["forms"][0])
    other["tools"][0]["function"]["parameters"]["title"] = "other"
    third = load(other).tools
    assert first is not None
    assert second is not None
    assert third is not None
    assert first[0] is second[0]
    assert first[0] != third[0]


@cases
def test_the_format_is_guessed_where_it_is_not_named(case: dict[str, Any]) -> None:
    record = {key: value for key, value in case["input"].items() if key != "format"}
    trace, seen = load(case["input"]), guess_format(record)
    assert seen is not None
    # Where two formats say the same in the same words, either will do.
    assert plain(load(record | {"format": seen})) == plain(trace)


GUESSES = [
    ({}, None),
    ({"text": "hello"}, None),
    ({"messages": "no list"}, None),
    ({"messages": []}, "openai"),
    ({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {}}]}, "openai"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "openai"),
    ({"messages": [], "system": "S"}, "anthropic"),
    ({"messages": [], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
    ({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}, "anthropic"),
    ({"messages": [None, {"role": "user", "content": [1]}], "tools": {"tools": []}}, "openai"),
    ({"output": []}, "openai_responses"),
    ({"input": "x"}, "openai_responses"),
    ({"items": []}, "openai_responses"),
    ({"events": []}, "callgrade"),
    ({"task_id": 1, "messages": []}, "tau"),
    ({"traj": []}, "tau"),
    ({"question": "x", "calls": []}, "bfcl"),
    ({"question": "x", "result": "y"}, "bfcl"),
    ({"question": "x"}, None),
]


@pytest.mark.parametrize(("record", "wanted"), GUESSES)
def test_guess_format(record: dict[str, Any], wanted: str | None) -> None:
    assert guess_format(record) == wanted


def test_of_two_formats_the_one_that_loses_nothing_is_guessed() -> None:
    rollout = [
        {
            "type": "response_item",
            "timestamp": "t",
            "payload": {"type": "function_call", "name": "f", "arguments": "{}"},
        }
    ]
    header = {"object": "trace", "id": "t1"}
    assert guess_format({"lines": [header]}) == "openai_agents"
    assert guess_format({"lines": [header, *rollout]}) == "codex"


def test_a_type_that_is_no_text_is_of_no_known_kind() -> None:
    span = {"object": "trace.span", "trace_id": "t", "span_data": {"type": ["agent"]}}
    trace = load({"format": "openai_agents", "lines": [{"object": "trace", "id": "t"}, span]})
    assert [(part.kind, part.path) for part in trace.unread] == [("call", "/lines/1/span_data")]


CHAT = {"format": "openai", "messages": []}
MISFITS = [
    (CHAT | {"tools": "f"}, "/tools", "a list of tools"),
    (CHAT | {"tools": {"tools": 1}}, "/tools/tools", "a list of tools"),
    (CHAT | {"tools": ["f"]}, "/tools/0", "a tool"),
    (CHAT | {"functions": ["f"]}, "/functions/0", "a tool"),
    (CHAT | {"tools": [{"parameters": {}}]}, "/tools/0", "a name"),
    (CHAT | {"tools": [{"name": ""}]}, "/tools/0", "a name"),
    (CHAT | {"tools": [{"type": "function", "parameters": {}}]}, "/tools/0", "a name"),
    (CHAT | {"tools": [{"type": "function", "function": {"type": "f"}}]}, "/tools/0/function", "a name"),
    (CHAT | {"tools": [{"name": "f"}, {"name": "f"}]}, "/tools/1", "a second tool named 'f'"),
    (CHAT | {"tools": [{"name": "f", "inputSchema": "{}"}]}, "/tools/0/inputSchema", "a JSON Schema"),
    (CHAT | {"tools": [{"function": {"name": "f", "parameters": [1]}}]}, "/tools/0/function/parameters/0",
     "a parameter: {name, type, required}"),
    (CHAT | {"tools": [{"name": "f", "annotations": []}]}, "/tools/0/annotations", "an object"),
    (CHAT | {"tools": [{"name": "f", "description": 1}]}, "/tools/0/description", "text"),
    ({"format": "openai", "messages": [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}]},
     "/messages/0/tool_calls/0", "function"),
    ({"format": "openai", "messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
     "/messages/0/tool_calls/0", "a name"),
    ({"format": "openai", "messages": [{"content": "x"}]}, "/messages/0", "a role"),
    ({"format": "openai", "messages": {}}, "/messages", "an array"),
    ({"format": "tau", "task_id": None, "traj": []}, "/task_id", "a task_id"),
    ({"format": "openai_responses"}, "", "input, output and items"),
    ({"format": "langchain"}, "", "either messages or a state's values"),
    ({"format": "langfuse", "data": [{"traceId": "s"}, {"traceId": "t"}]}, "/data", "of one trace"),
    ({"format": "openai_responses", "output": [{"content": "x"}]}, "/output/0", "a role"),
    ({"format": "openai_responses", "items": [{"type": "function_call"}]}, "/items/0", "a name"),
    ({"format": "anthropic", "messages": [{"role": "assistant", "content": [{"type": "text"}, {"type": "tool_use"}]}]},
     "/messages/0/content/1", "a name"),
    ({"format": "callgrade", "events": [{}]}, "/events/0", "exactly one"),
    ({"format": "callgrade", "events": [{"user": "a", "assistant": "b"}]}, "/events/0", "exactly one"),
    ({"format": "callgrade", "events": [{"user": "a", "result": 1}]}, "/events/0", "belong to a call"),
    ({"format": "callgrade", "events": [{"user": "a"}, {"call": {"name": "f"}, "parallel": True}]},
     "/events/1/parallel", "no call"),
    ({"format": "tau", "task_id": 1}, "", "messages or traj"),
    ({"format": "bfcl", "id": "q", "question": "?"}, "", "calls or result"),
    ({"format": "bfcl", "id": "q", "question": "?", "calls": [], "functions": [1]}, "/functions/0", "a tool"),
    ({"format": "tau", "task_id": 1, "traj": [{"role": "assistant", "tool_calls": [{}]}]}, "/traj/0/tool_calls/0",
     "function"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "path", "words"), MISFITS)
def test_a_misfit_is_named_by_its_place(record: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load(record)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert words in problem.message


SHAPES: list[tuple[dict[str, Any], tuple[str | int, ...]]] = [
    ({"format": "opnai", "messages": []}, ()),
    ({"mesages": []}, ()),
    ({"format": "openai", "messages": [], "id": 7}, ("openai", "id")),
    ({"format": "callgrade", "events": [{"call": {"name": "f", "arguements": {}}}]},
     ("callgrade", "events", 0, "call", "arguements")),
]  # fmt: skip


@pytest.mark.parametrize(("record", "place"), SHAPES)
def test_a_wrong_shape_is_a_validation_error(record: dict[str, Any], place: tuple[str | int, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        INPUT.validate_python(record)
    assert caught.value.errors()[0]["loc"] == place


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"messages": []}, ': this is a trace; in a request it is the member `trace`: {"trace": {...}}'),
        ({"format": "openai", "x": 1}, ': this is a trace; in a request it is the member `trace`: {"trace": {...}}'),
        (
            {"request": {"trace": {}}},
            "/request: the trace or request stands below 'request'; send it without that wrapping",
        ),
        ({"trace": {"format": "openai", "id": {}}}, "/trace/id: expected a string"),
    ],
)
def test_what_is_no_request_is_told_what_it_is(body: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_request(body)
    assert said == "{0.path}: {0.message}".format(*caught.value.problems)
