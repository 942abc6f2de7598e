"""The law of intake: a call anywhere in a source is a step or appears in `unread`, or its record is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.core.trace import Trace
from service.errors import InputError
from tests.intake.records import RECORDS, load

SOLE = {
    name: [case["input"] for case in cases if "sample" not in case["input"]]  # the other replies are other traces
    for name, cases in RECORDS.items()
}

PAYLOAD = {
    *("tools", "functions", "function", "function_call", "custom", "parameters", "json_schema", "annotations"),
    *("arguments", "args", "input", "kwargs", "calls", "action", "operation"),
    *("functionResponse", "toolResult", "toolConfig", "approval"),
    *("result", "results", "output", "outputs", "thinking", "audio", "metadata", "attributes", "delta"),
    *("usage", "source", "summary", "citations", "container", "queries", "url"),
    *("tool_definitions", "expectedTools", "reference_tool_calls", "task", "reward_info", "scores", "inputParameters"),
    *("input_parameters", "response", "expected", "toolUseResult", "tool_responses"),
    *("metrics", "final_metrics", "tool_kwargs", "tool_output"),
    *("state", "initial", "final", "gold", "gold_actions", "possible_answer", "ground_truth", "info", "sample"),
}
"""Members that hold what a call carries, what was on offer or what was expected: a call in them is nobody's."""

SHAPES: list[Any] = [
    {"type": "tool_use", "id": "t", "name": "planted", "input": {}},
    {"type": "function_call", "call_id": "c", "name": "planted", "arguments": "{}"},
    {"id": "c", "type": "function", "function": {"name": "planted", "arguments": "{}"}},
    {"type": "some_new_call", "tool": "planted"},
    {"name": "planted", "args": {"x": 1}},
    {"toolUse": {"toolUseId": "t", "name": "planted", "input": {}}},
    {"functionCall": {"name": "planted", "args": {}}},
    {"nested": [{"deeper": {"type": "tool-planted", "toolCallId": "t", "input": {}}}]},
]
NAMES = ["tool_calls", "function_call", "requests", "steps", "parts", "x/y~z", ""]


def holds_result(value: dict[str, Any]) -> bool:
    kind = str(value.get("type") or value.get("part_kind") or value.get("from"))
    return value.get("role") in ("tool", "function") or kind.endswith(("_result", "tool", "-return", "retry-prompt"))


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List where something can be planted: objects and lists outside of payloads."""
    if isinstance(value, dict) and holds_result(value):
        return [path]
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, item in below if key not in PAYLOAD for place in places(item, (*path, key))]
    return [path, *inner] if isinstance(value, dict | list) else inner


def make_another(shape: Any, trace: Trace, data: st.DataObject) -> Any:
    """Build the shape, at times with the id of a call of the trace: many agents number their calls anew in every
    run.
    """
    ids = [step.call.id for step in trace.steps if step.call.id]
    taken = data.draw(st.sampled_from([None, *ids]))
    text = json.dumps(shape)
    for own in ("t", "c") if taken else ():
        text = text.replace(json.dumps(own), json.dumps(taken))
    return json.loads(text)


def look(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def at_pointer(value: Any, path: str) -> Any:
    for token in path.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def look_at(trace: Trace, path: str) -> Any:
    """Return what stands at a pointer in the source or, of a text that nothing reads, in the trace."""
    first = path[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")
    if path.endswith("/text") or (path and isinstance(trace.raw, dict) and first not in trace.raw):
        head, _, rest = path[1:].partition("/")
        return trace.messages[int(rest.partition("/")[0])].text if head == "messages" else ""
    return at_pointer(trace.raw, path)


def accounts_for(trace: Trace, name: str) -> bool:
    """Whether a call of this name is a step, or stands below the pointer of an unread call."""
    shown = [json.dumps(look_at(trace, part.path)) for part in trace.unread if part.kind == "call"]
    return any(step.call.name == name for step in trace.steps) or any(name in text for text in shown)


UNTOLD = "a reader took a member that it does not read"


@pytest.mark.parametrize("name", [name for name in SOLE if name != "spans"])
@given(data=st.data())
def test_no_call_is_lost(name: str, data: st.DataObject) -> None:
    record = copy.deepcopy(data.draw(st.sampled_from(SOLE[name])))
    place = look(record, data.draw(st.sampled_from(places(record))))
    shape = make_another(data.draw(st.sampled_from(SHAPES)), load(record), data)
    if isinstance(place, dict):
        key = data.draw(st.sampled_from(NAMES))
        place[key] = [*place[key], shape] if isinstance(place.get(key), list) else shape
    else:
        place.insert(data.draw(st.integers(0, len(place))), shape)
    try:
        trace = load(record)
    except (ValidationError, InputError):
        return
    assert accounts_for(trace, "planted"), UNTOLD


BESIDE = [
    ("langfuse", ("metadata",)),
    ("langfuse", ("toolCalls",)),
    ("langfuse", ("observations", 0, "metadata")),
    ("langsmith", ("extra",)),
    ("langsmith", ("child_runs", 0, "extra")),
    ("mlflow", ("data", "spans", 0, "attributes")),
    ("mlflow", ("data", "spans", 0, "links")),
]
"""Members of wrappers that may hold anything."""


@pytest.mark.parametrize(("name", "way"), BESIDE)
@given(data=st.data())
def test_no_call_is_lost_beside_a_conversation(name: str, way: tuple[str | int, ...], data: st.DataObject) -> None:
    records = [record for record in SOLE[name] if leads(record, way[:-1])]
    record = copy.deepcopy(data.draw(st.sampled_from(records)))
    shape = make_another(data.draw(st.sampled_from(SHAPES)), load(record), data)
    written = data.draw(st.sampled_from([[shape], {"a.b": [shape]}, [json.dumps(shape)], json.dumps([shape])]))
    around = look(record, way[:-1])
    around[way[-1]] = {**around.get(way[-1], {}), "x": written} if way[-1] == "attributes" else written
    assert accounts_for(load(record), "planted")


def leads(value: Any, way: tuple[str | int, ...]) -> bool:
    try:
        return isinstance(look(value, way), dict)
    except (KeyError, IndexError, TypeError):
        return False


SECOND: list[tuple[dict[str, Any], str]] = [
    ({"format": "exchange", "request": {"messages": []}, "response": {"role": "assistant", "content": "x"}}, "result"),
    ({"format": "exchange", "request": {"messages": []}, "response": {"role": "assistant", "content": "x"}}, "output"),
    ({"format": "tau", "task_id": 1, "messages": []}, "traj"),
    ({"format": "vercel", "messages": [{"role": "assistant", "parts": []}]}, "messages/0/content"),
    ({"format": "langchain", "messages": [{"type": "ai", "content": ""}]}, "messages/0/tool_call_chunks"),
    ({"format": "langchain", "messages": [{"type": "ai", "data": {"content": ""}}]}, "messages/0/extra"),
    ({"format": "gemini", "contents": "x"}, "automaticFunctionCallingHistory"),
    ({"format": "gemini", "candidates": [{"content": {"parts": []}}]}, "candidates/0/groundingMetadata"),
    ({"format": "gemini", "candidates": [{}]}, "candidates/0/content"),
    ({"format": "openai", "messages": []}, "metadata"),
    ({"format": "openai", "messages": []}, "response"),
    ({"format": "litellm", "messages": [{"role": "user", "content": "x"}]}, "proxy_server_request"),
]
"""Records, and a place in each where calls stand a second time, if at all."""


@pytest.mark.parametrize(
    ("record", "place"), SECOND, ids=lambda value: value if isinstance(value, str) else value["format"]
)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "some_new_call" not in json.dumps(shape)])
def test_no_call_is_lost_in_a_second_place(record: dict[str, Any], place: str, shape: Any) -> None:
    planted = copy.deepcopy(record)
    *way, key = place.split("/")
    look(planted, tuple(int(token) if token.isdigit() else token for token in way))[key] = [shape]
    if key == "traj":
        planted[key] = [{"role": "assistant", "steps": [shape]}]
    assert accounts_for(load(planted), "planted")


PRINTED = "ToolUseBlock(id='c', input={}, name='planted', type='tool_use')"
CALLED = {"id": "c", "name": "planted", "arguments": {}}
FLAT: list[tuple[str, str, list[Any]]] = [
    ("openai", "messages/0/tool_calls", [f"[{PRINTED}]", f"[{CALLED}]", json.dumps([CALLED]), "planted", True, 1]),
    ("openai", "messages/0/function_call", ["FunctionCall(arguments='{}', name='planted')", "planted"]),
    ("langchain", "messages/0/tool_calls", [f"[{PRINTED}]", str([CALLED])]),
    ("autogen", "messages/0/content", [f"[{PRINTED}]", "planted"]),
    ("anthropic", "messages/0/content", [["TextBlock(text='ok')", PRINTED], [json.dumps(SHAPES[0])], [str(SHAPES[0])]]),
    ("gemini", "contents/0/parts", [[str(SHAPES[6])], ["Part(function_call=FunctionCall(args={}, name='planted'))"]]),
    ("bedrock", "messages/0/content", [[str(SHAPES[5])], [json.dumps(SHAPES[5])]]),
    ("pydantic_ai", "messages/0/parts", [["ToolCallPart(tool_name='planted', args={})"]]),
    ("llama_index", "messages/0/blocks", [["ToolCallBlock(tool_name='planted', tool_kwargs={})"]]),
    ("claude_code", "lines/0/message/content", [[PRINTED]]),
    ("adk", "events/0/content/parts", [[str(SHAPES[6])]]),
]
"""Where calls are listed, and what stands there instead of objects."""
HOLDERS: dict[str, Any] = {
    "openai": {"messages": [{"role": "assistant", "content": "ok"}]},
    "langchain": {"messages": [{"type": "ai", "content": "ok"}]},
    "autogen": {"messages": [{"type": "ToolCallRequestEvent", "source": "shop"}]},
    "anthropic": {"messages": [{"role": "assistant"}]},
    "gemini": {"contents": [{"role": "model"}]},
    "bedrock": {"messages": [{"role": "assistant"}]},
    "pydantic_ai": {"messages": [{"kind": "response"}]},
    "llama_index": {"messages": [{"role": "assistant"}]},
    "claude_code": {"lines": [{"type": "assistant", "sessionId": "s", "message": {"role": "assistant"}}]},
    "adk": {"events": [{"author": "shop", "content": {"role": "model"}}]},
}


@pytest.mark.parametrize(
    ("name", "place", "shape"), [(name, place, shape) for name, place, shapes in FLAT for shape in shapes]
)
def test_no_call_is_lost_that_is_no_object(name: str, place: str, shape: Any) -> None:
    record = copy.deepcopy({"format": name, **HOLDERS[name]})
    *way, key = place.split("/")
    look(record, tuple(int(token) if token.isdigit() else token for token in way))[key] = shape
    assert any(part.kind == "call" and part.path.startswith(f"/{place}") for part in load(record).unread)


@pytest.mark.parametrize(("flag", "failed"), [(True, True), ("true", True), (1, True), ("false", False), (0, False)])
def test_a_flag_may_be_spelt_as_a_text_or_a_number(flag: Any, failed: bool) -> None:
    part = {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": flag}
    [step] = load({"format": "anthropic", "messages": [OF_ANTHROPIC[0], {"role": "user", "content": [part]}]}).steps
    assert step.result is not None
    assert step.result.is_error == failed


@pytest.mark.parametrize("arguments", [{"to": "Eve"}, '{"to": "Eve"}'])
def test_the_arguments_of_a_streamed_call_may_be_an_object(arguments: Any) -> None:
    delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "pay", "arguments": arguments}}]}
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}]
    [step] = load({"format": "openai", "chunks": chunks}).steps
    assert step.call.arguments == {"to": "Eve"}


def test_no_line_is_lost_that_is_no_object() -> None:
    said = {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "user", "content": "Go"}}
    asked = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Go"}}
    for record in ({"format": "codex", "lines": [said]}, {"format": "claude_code", "lines": [asked]}):
        whole = load(record)
        assert load({**record, "lines": [json.dumps(record["lines"][0])]}).messages == whole.messages
        for line in (
            '{"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "planted", "inp',
            None,
            5,
        ):
            unread = load({**record, "lines": [*record["lines"], line]}).unread
            assert {("call", "/lines/1"), ("text", "/lines/1")} <= {(part.kind, part.path) for part in unread}


ASKED: list[Any] = [
    {"role": "user", "content": "Go"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "done"},
]
OF_ANTHROPIC: list[Any] = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]},
]
OF_BEDROCK: list[Any] = [
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "done"}]}}]},
]
OF_GEMINI: list[Any] = [
    {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}}}]},
]
OF_RESPONSES: list[Any] = [
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "done"},
]
EMPTY_REPLIES: list[tuple[dict[str, Any], str, list[Any]]] = [
    ({"format": "openai", "messages": ASKED}, "choices", [[], [{}], [{"message": {}}]]),
    ({"format": "openai", "messages": ASKED}, "chunks", [[]]),
    ({"format": "anthropic", "messages": OF_ANTHROPIC, "role": "assistant"}, "content", [[], ""]),
    ({"format": "gemini", "contents": OF_GEMINI}, "candidates", [[], [{}], [{"content": {}}]]),
    ({"format": "bedrock", "messages": OF_BEDROCK}, "output", [{}, {"message": {}}, {"message": {"content": []}}]),
    ({"format": "openai_responses", "input": OF_RESPONSES}, "output", [[]]),
    ({"format": "langsmith", "run_type": "llm", "inputs": {"messages": ASKED}}, "outputs", [None, {}]),
    ({"format": "litellm", "call_type": "completion", "messages": ASKED}, "response", [None, {}]),
    ({"format": "exchange", "request": {"messages": ASKED}}, "response", [{"choices": []}]),
]


@pytest.mark.parametrize(
    ("record", "name", "reply"), [(record, name, reply) for record, name, replies in EMPTY_REPLIES for reply in replies]
)
def test_of_an_empty_reply_calls_and_texts_are_unread(record: dict[str, Any], name: str, reply: Any) -> None:
    assert [part for part in load({**record, name: reply}).unread if part.kind in ("call", "text")]


@pytest.mark.parametrize(
    "said", [{"errorCode": "MAX_TOKENS"}, {"error_code": "SAFETY"}, {"partial": True}, {"finishReason": "MAX_TOKENS"}]
)
def test_an_event_that_is_not_whole_leaves_open_what_follows(said: dict[str, Any]) -> None:
    parts = [("user", "user", "Go"), ("shop", "model", "One moment."), ("shop", "model", "It is")]
    events = [{"author": who, "content": {"role": role, "parts": [{"text": text}]}} for who, role, text in parts]
    assert load({"format": "adk", "events": events}).unread == ()
    assert load({"format": "adk", "events": [*events[:2], {**events[2], "partial": True}, events[2]]}).unread == ()
    unread = load({"format": "adk", "events": [*events[:2], {**events[2], **said}]}).unread
    assert {part.kind for part in unread} == {"call", "text"}


def test_a_conversation_without_a_reply_of_its_own_lacks_none() -> None:
    answered = [*ASKED, {"role": "assistant", "content": "It is done."}]
    assert load({"format": "openai", "messages": ASKED}).unread == ()
    assert load({"format": "openai", "messages": answered, "choices": []}).unread == ()
    assert load({"format": "litellm", "call_type": "completion", "messages": answered, "response": None}).unread == ()


def test_a_text_among_the_parts_of_a_message_stays_a_text() -> None:
    for text in ('{"answer": 5}', "It rains (a bit).", "[1, 2]"):
        trace = load({"format": "langchain", "messages": [{"type": "ai", "content": [text]}]})
        assert (trace.answer, trace.unread) == (text, ())


CALL = '{"name": "planted", "arguments": {}}'
TEXTS = [
    *("<think>f(x=2)</think>[planted(x=1)]", "So:\n```python\nplanted(x=1)\n```", "Now: planted(x=1)"),
    *("[my-planted(x=1)]", "r = planted(1)", "await planted(1)"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_call_is_lost_in_a_text(text: str) -> None:
    assert accounts_for(load({"format": "bfcl", "question": "?", "result": text}), "planted")


def test_no_call_is_lost_in_a_text_without_tools() -> None:
    record = {"format": "openai", "messages": [{"role": "assistant", "content": "[planted(x=1)]"}]}
    assert [part.kind for part in load(record).unread] == ["call"]
    assert load({**record, "tools": []}).unread == ()


REPEATS: list[tuple[Any, int]] = [
    ([{"name": "f", "args": {"x": 1}}], 0),
    ([{"id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}], 0),
    ([{"id": "b", "name": "f", "args": {"x": 1}}], 1),
    ([{"name": "f", "args": {"x": 1}}, {"name": "f", "args": {"x": 1}}], 1),
    ([{"name": "f", "args": {"x": True}}, {"name": "g", "args": {}}], 2),
]


@pytest.mark.parametrize(("log", "others"), REPEATS)
def test_only_an_exact_repetition_is_no_other_call(log: Any, others: int) -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}
    record = {"format": "openai", "messages": [{"role": "assistant", "tool_calls": [call]}]}
    trace = load(record | {"tool_log": log})
    assert [part.kind for part in trace.unread] == ["call"] * others
    assert bool(trace.ignored) == (others == 0)
    for name in ("gold", "expectedCalls", "few_shot", "examples"):
        assert load(record | {name: log}).unread == ()


@given(
    shape=st.sampled_from(SHAPES),
    name=st.sampled_from(NAMES),
    role=st.sampled_from(["assistant", "user"]),
    key=st.sampled_from(["gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "output"]),
    written=st.booleans(),
)
def test_no_call_is_lost_in_a_span(shape: Any, name: str, role: str, key: str, *, written: bool) -> None:
    parts: list[Any] = [{"type": "text", "content": "Hi", "text": "Hi"}]
    message: Any = {"role": role, "parts": parts}
    if name == "parts":
        parts.append(shape)
    else:
        message[name] = [shape]
    messages = json.dumps([message]) if written else [message]
    attributes = {"gen_ai.operation.name": "chat", key: messages}
    try:
        trace = load({"format": "spans", "spans": [{"attributes": attributes}]})
    except InputError:
        return
    assert accounts_for(trace, "planted")


TALK: list[Any] = [
    {"gen_ai.operation.name": "invoke_agent"},
    {"gen_ai.operation.name": "chat", "gen_ai.output.messages": [{"role": "assistant",
     "parts": [{"type": "tool_call", "id": "t", "name": "f", "arguments": {"x": 1}}]}]},
    {"gen_ai.tool.name": "f", "gen_ai.tool.call.id": "t", "gen_ai.tool.call.arguments": {"x": 1}},
    {"http.method": "GET"},
]  # fmt: skip
"""The spans of an agent within which a model makes a call that a tool answers, and of a service."""
SOURCES = [
    "gen_ai.output.messages", "gen_ai.input.messages", "llm.output_messages", "gen_ai.completion", "any.attribute",
]  # fmt: skip


@given(
    shape=st.sampled_from(SHAPES),
    at=st.integers(0, 3),
    source=st.sampled_from(SOURCES),
    member=st.sampled_from(["content", "tool_calls", "additional_kwargs", "parts"]),
    written=st.booleans(),
    event=st.booleans(),
)
def test_no_call_is_lost_beside_what_is_read_of_spans(
    shape: Any, at: int, source: str, member: str, *, written: bool, event: bool
) -> None:
    bare = copy.deepcopy(TALK)
    if at == 2 and source == "gen_ai.completion":  # a tool's own result
        source = "gen_ai.output.messages"
    said = bare[at].get(source) or []
    given = [*said, {"role": "assistant", member: {"x": [shape]} if member == "additional_kwargs" else [shape]}]
    told = {source: json.dumps(given) if written else given}
    spans: list[Any] = [
        {"span_id": str(n), "parent_id": "0" if n else None, "start_time": 10**18 + n, "attributes": attributes}
        for n, attributes in enumerate(bare)
    ]
    if event and at != 2:  # a tool's events hold its result
        spans[at]["events"] = [{"name": "gen_ai.choice", "attributes": told}]
    else:
        spans[at]["attributes"] |= told
    try:
        trace = load({"format": "spans", "spans": spans})
    except InputError:
        return
    assert accounts_for(trace, "planted")


def test_what_a_leaderboard_decoded_to_no_call_is_its_answer() -> None:
    trace = {
        "format": "bfcl",
        "question": "?",
        "functions": [{"name": "f"}],
        "result": "Use this: ```python\nf(a=1)\n```",
    }
    assert [bool(load(trace | more).unread) for more in ({}, {"calls": None})] == [
        True,
        False,
    ]
