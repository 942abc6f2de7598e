"""The Responses API: items of a conversation with custom, hosted and MCP tools, and a whole response."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from script import ABOUT, PNG, QUESTIONS, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep
from server import serve

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

SHELL_OUTPUT = [{"stdout": "a.md", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}, "created_by": None}]


def read_hosted(item: dict[str, Any]) -> tuple[list[Any], Any, bool] | None:
    """What an item of the server's says was called, what came of it, and whether it failed."""
    kind = item.get("type", "")
    if kind == "mcp_call":
        failed = item["error"] is not None
        return [item["name"], json.loads(item["arguments"])], item["error"] if failed else {"lat": 60.4}, failed
    if not kind.endswith("_call") or kind in ("function_call", "custom_tool_call"):
        return None
    given = next((item[name] for name in ("action", "operation") if name in item), None)
    given = given or {name: item[name] for name in ("queries", "code") if name in item}
    result = SHELL_OUTPUT if kind == "shell_call" else item.get("outputs", item.get("results"))
    return [kind.removesuffix("_call"), given], result, False


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
    hosted = [call for item in items if (call := read_hosted(item))]
    named = {call[0]: None for call, _, _ in hosted}
    run = Run(
        calls=[*Run().calls[:2], ["write_note", "Oslo: rain"], *[call for call, _, _ in hosted]],
        results=[*RESULTS, *[result for _, result, _ in hosted]],
        errors=[*[False] * 3, *[failed for _, _, failed in hosted]],
        tools=list(dict.fromkeys(["get_weather", "write_note", "web_search", "maps", *named])),
    )
    record = {"instructions": SYSTEM, "input": items, "tools": TOOLS}
    keep("openai_responses", "items", record, package="openai", run=run, image="/input/9/content/1")
    response = client.responses.create(model=MODEL, input=items[:1], tools=TOOLS[:2], instructions=SYSTEM)
    two = first_reply(texts=Run().texts[1:2])
    keep("openai_responses", "response", response.model_dump(mode="json"), package="openai", run=two)
    request = {"model": MODEL, "input": items[:1], "tools": TOOLS[:2], "instructions": SYSTEM}
    pair = {"request": request, "response": response.model_dump(mode="json")}
    keep("exchange", "openai_responses", pair, package="openai", run=first_reply())
