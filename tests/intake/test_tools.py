"""Tools: in every form, and on offer from the first request that lists them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.reading import read_trace
from service.intake.tools import read_tools

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


SCHEMA = {"type": "object"}
OUTPUT = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
HINTS = {"readOnlyHint": True}

FORMS: list[tuple[dict[str, Any], ToolDef]] = [
    ({"type": "function", "function": {"name": "f", "description": "D", "parameters": SCHEMA, "strict": True}},
     ToolDef("f", "D", SCHEMA)),
    ({"type": "function", "name": "f", "parameters": SCHEMA}, ToolDef("f", "", SCHEMA)),
    ({"name": "f", "description": None, "input_schema": SCHEMA}, ToolDef("f", "", SCHEMA)),
    ({"type": "custom", "name": "f", "input_schema": SCHEMA}, ToolDef("f", "", SCHEMA)),
    ({"name": "f", "title": "F", "inputSchema": SCHEMA, "outputSchema": OUTPUT, "annotations": HINTS},
     ToolDef("f", "", SCHEMA, OUTPUT, HINTS)),
    ({"name": "f", "output_schema": True, "parameters": False}, ToolDef("f", "", False, True)),
    ({"name": "f", "parameters": None, "annotations": None}, ToolDef("f")),
    ({"name": "f", "parameters": {}}, ToolDef("f", "", {})),
    ({"name": "function"}, ToolDef("function")),
    ({"type": "custom", "custom": {"name": "f", "format": {"type": "text"}}}, ToolDef("f")),
    ({"type": "web_search"}, ToolDef("web_search")),
    ({"type": "web_search_20250305", "name": "web_search"}, ToolDef("web_search")),
    ({"type": "mcp", "server_label": "wiki", "server_url": "u"}, ToolDef("wiki")),
]  # fmt: skip


@pytest.mark.parametrize(("given", "tool"), FORMS)
@pytest.mark.parametrize("listed", [False, True])
def test_forms(given: dict[str, Any], tool: ToolDef, listed: bool) -> None:
    tools: Any = [{"name": "first"}, given]
    assert read_tools({"tools": tools} if listed else tools) == (ToolDef("first"), tool)


@pytest.mark.parametrize(("given", "wanted"), [(None, None), ([], ()), ({"tools": []}, ()), ({"tools": None}, None)])
def test_absent_is_not_empty(given: object, wanted: object) -> None:
    assert read_tools(given) == wanted


CHANGE = {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}
AS = {"$ref": "#/components/parameters/As"}
API: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {
                "operationId": "get_order",
                "summary": "Look an order up.",
                "parameters": [{"$ref": "#/components/parameters/As"}],
            },
            "post": {"requestBody": {"required": True, "content": CHANGE}},
            "put": {"requestBody": {"content": {"application/json": {"schema": {"type": "array"}}}}},
        }
    },
    "components": {
        "parameters": {"As": {"name": "as", "in": "query", "description": "A form.", "schema": {"type": "string"}}},
        "schemas": {"Change": {"properties": {"state": {"type": "string"}}, "required": ["state"]}},
    },
}
ID = {"type": "integer"}


def _list_parameters(tools: Sequence[ToolDef]) -> list[tuple[ToolDef, Any]]:
    return [(tool, tool.parameters) for tool in tools]


def test_the_operations_of_an_openapi_document_are_tools() -> None:
    tools = read_tools(API) or ()
    found = {
        tool.name: (parameters["properties"], parameters["required"]) for tool, parameters in _list_parameters(tools)
    }
    assert found == {
        "get_order": ({"id": ID, "as": {"type": "string", "description": "A form."}}, ["id"]),
        "post_orders_id": ({"state": {"type": "string"}, "id": ID}, ["state", "id"]),
        "put_orders_id": ({"body": {"type": "array"}, "id": ID}, ["id"]),
    }
    assert tools[0].description == "Look an order up."
    assert read_tools({"jsonrpc": "2.0", "result": {"tools": [{"name": "f"}]}}) == (ToolDef("f"),)


def test_a_reference_that_leads_nowhere_is_named() -> None:
    broken = {"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": [{"$ref": "#/components/parameters/B"}]}}}}
    with pytest.raises(
        InputError, match=r"/paths/~1a/get/parameters/0: the reference '#/components/parameters/B' leads nowhere"
    ):
        read_tools(broken)
