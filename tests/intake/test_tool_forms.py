"""Tool definitions in every form, mixed in one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.tools import read_tools

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
