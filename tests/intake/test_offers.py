"""Logs in which each request lists its own tools: a tool is on offer from the first request that lists it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.intake.reading import read_trace

Json = Any


def call(name: str) -> Json:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "function": {"name": name, "arguments": "{}"}}],
    }


def result(name: str) -> Json:
    return {"role": "tool", "tool_call_id": name, "content": "1"}


REQUEST_PATHS = [{"role": "user", "content": "Go."}]
AFTER_OPEN = [*REQUEST_PATHS, call("open"), result("open")]
AFTER_PAY = [*AFTER_OPEN, call("pay"), result("pay")]
REQUESTS = [
    (REQUEST_PATHS, call("open")),
    (AFTER_OPEN, call("pay")),
    (AFTER_PAY, {"role": "assistant", "content": "Done."}),
]


def list_tools(names: list[str]) -> Json:
    return [{"type": "function", "function": {"name": name}} for name in names]


def write_langfuse(catalogues: list[list[str] | None]) -> Json:
    observations = [
        {
            "type": "GENERATION",
            "input": given if tools is None else {"messages": given, "tools": list_tools(tools)},
            "output": reply,
        }
        for (given, reply), tools in zip(REQUESTS, catalogues, strict=True)
    ]
    return {"format": "langfuse", "observations": observations}


def write_langsmith(catalogues: list[list[str] | None]) -> Json:
    runs = [
        {
            "id": str(n),
            "run_type": "llm",
            "inputs": {"messages": given},
            "outputs": reply,
            "extra": {} if tools is None else {"invocation_params": {"tools": list_tools(tools)}},
        }
        for n, ((given, reply), tools) in enumerate(zip(REQUESTS, catalogues, strict=True))
    ]
    return {"format": "langsmith", "runs": runs}


def write_spans(catalogues: list[list[str] | None]) -> Json:
    spans = [
        {
            "name": "chat",
            "context": {"trace_id": "t", "span_id": str(n)},
            "start_time": f"2026-01-01T00:00:0{2 * n}Z",
            "end_time": f"2026-01-01T00:00:0{2 * n + 1}Z",
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps([write_message(one) for one in given]),
                "gen_ai.output.messages": json.dumps([write_message(reply)]),
            }
            | ({} if tools is None else {"gen_ai.tool.definitions": json.dumps([{"name": name} for name in tools])}),
        }
        for n, ((given, reply), tools) in enumerate(zip(REQUESTS, catalogues, strict=True))
    ]
    return {"format": "spans", "spans": spans}


def write_message(message: Json) -> Json:
    parts: list[Json] = [{"type": "text", "content": message["content"]}]
    if "tool_calls" in message:
        name = message["tool_calls"][0]["id"]
        parts = [{"type": "tool_call", "id": name, "name": name, "arguments": {}}]
    if message["role"] == "tool":
        parts = [{"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}]
    return {"role": message["role"], "parts": parts}


CATALOGUES = [
    ([["open", "pay"]] * 3, ["open", "pay"], {}),
    ([["open"], ["open", "pay"], ["open", "pay"]], ["open", "pay"], {"pay": (1, 1)}),
    ([["open"], ["open"], ["open", "pay"]], ["open", "pay"], {"pay": (2, 1)}),
    ([["open"], ["pay"], ["pay"]], ["open", "pay"], {"pay": (1, 1)}),
    ([None, ["open"], ["open", "pay"]], ["open", "pay"], {}),
    ([["open"], None, ["open", "pay"]], ["open", "pay"], {}),
]


@pytest.mark.parametrize("write", [write_langfuse, write_langsmith, write_spans])
@pytest.mark.parametrize(("catalogues", "tools", "offers"), CATALOGUES)
def test_a_tool_is_on_offer_from_the_first_request_that_lists_it(
    catalogues: list[list[str] | None], tools: list[str], offers: dict[str, tuple[int, int]], write: Any
) -> None:
    trace = read_trace(write(catalogues))
    assert sorted(tool.name for tool in trace.tools or ()) == tools
    assert trace.offers == offers


def test_what_was_called_before_the_first_request_was_on_offer() -> None:
    log = write_langfuse([["open"], ["pay"], ["open", "pay"]])
    del log["observations"][0]
    assert read_trace(log).offers == {}
    log = write_spans([["open"], ["pay"], ["open", "pay"]])
    del log["spans"][0]
    assert read_trace(log).offers == {}
