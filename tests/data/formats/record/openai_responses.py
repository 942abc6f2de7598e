"""The Responses API: items of a conversation with custom, hosted and MCP tools, and a whole response."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from script import ABOUT, PNG, QUESTIONS, RESULTS, SCHEMAS, SYSTEM, Run, keep
from server import HOSTED, serve

MODEL = "gpt-5-mini"
TOOLS: list[Any] = [
    {
        "type": "function",
        "name": "get_weather",
        "description": ABOUT["get_weather"],
        "parameters": SCHEMAS["get_weather"],
        "strict": True,
    },
    {"type": "custom", "name": "write_note", "description": ABOUT["write_note"]},
    {"type": "web_search"},
    {"type": "mcp", "server_label": "maps", "server_url": "https://maps.invalid", "require_approval": "never"},
]
RESULT_OF = {"call_a": json.dumps(RESULTS[0]), "call_b": RESULTS[1], "call_c": RESULTS[2]}

with serve() as url:
    client = OpenAI(base_url=f"{url}/v1", api_key="x")
    items: list[Any] = []
    for question in QUESTIONS:
        image = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}
        parts = [{"type": "input_text", "text": question}, *([image] if question.startswith("Write") else [])]
        items.append({"role": "user", "content": parts})
        while True:
            response = client.responses.create(model=MODEL, input=items, tools=TOOLS, instructions=SYSTEM)
            said = [item.model_dump(mode="json") for item in response.output]
            items += said
            calls = [item for item in said if item["type"] in ("function_call", "custom_tool_call")]
            if not calls:
                break
            items += [
                {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": RESULT_OF[item["call_id"]]}
                for item in calls
            ]
    run = Run(
        calls=[*Run().calls[:2], ["write_note", "Oslo: rain"]],
        errors=[False] * 3,
        tools=["get_weather", "write_note", "web_search", "maps"],
    )
    start = next(n for n, item in enumerate(items) if item.get("id") == "ws_1")
    lost = [("call", f"/input/{start + n}") for n, item in enumerate(HOSTED) if item["type"].endswith("_call")]
    record = {"instructions": SYSTEM, "input": items, "tools": TOOLS}
    keep("openai_responses", "items", record, package="openai", run=run, unread=lost)
    response = client.responses.create(model=MODEL, input=items[:1], tools=TOOLS[:2], instructions=SYSTEM)
    two = Run(
        Run().calls[:2],
        [None, None],
        [False, False],
        [["assistant", "Let me look."]],
        None,
        ["get_weather", "write_note"],
    )
    keep("openai_responses", "response", response.model_dump(mode="json"), package="openai", run=two)
