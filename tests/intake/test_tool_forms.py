"""Tool definitions in every form, mixed in one list."""

from __future__ import annotations

from typing import Any

import pytest

from service.core.trace import ToolDef
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
