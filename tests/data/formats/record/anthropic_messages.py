"""Anthropic's Messages with thinking, the provider's own tools, an MCP server, a failed tool and an image as a result."""

from __future__ import annotations

import json
from typing import Any

from anthropic import Anthropic
from script import ABOUT, PNG, QUESTIONS, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep
from server import SERVED, serve

MODEL = "claude-sonnet-4-5"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
TOOLS: list[Any] = [
    {"name": name, "description": ABOUT[name], "input_schema": schema} for name, schema in SCHEMAS.items()
]
OWN: list[Any] = [{"type": "web_search_20250305", "name": "web_search"}]
NOTED = [{"type": "text", "text": RESULTS[2]}, IMAGE]
RESULT_OF: dict[str, Any] = {
    "call_a": {"content": json.dumps(RESULTS[0])},
    "call_b": {"content": RESULTS[1], "is_error": True},
    "call_c": {"content": NOTED},
}

with serve() as url:
    client = Anthropic(base_url=url, api_key="x")
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "system": SYSTEM, "tools": TOOLS + OWN}
    servers = {"mcp_servers": [{"type": "url", "url": "https://maps.invalid", "name": "maps"}]}
    messages: list[Any] = []
    for question in QUESTIONS:
        parts = [{"type": "text", "text": question}, *([IMAGE] if question.startswith("Write") else [])]
        messages.append({"role": "user", "content": parts})
        while True:
            reply = client.messages.create(messages=messages, extra_body=servers, **asked)
            messages.append(
                {
                    "role": "assistant",
                    "content": [block.model_dump(mode="json", exclude_none=True) for block in reply.content],
                }
            )
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                break
            results = [{"type": "tool_result", "tool_use_id": call.id, **RESULT_OF[call.id]} for call in calls]
            messages.append({"role": "user", "content": results})
    said = messages[-3]["content"]  # what the provider's tools did, as the client dumps it
    returned = [block for block in said if block["type"].endswith("tool_result")]
    names = {block["name"]: None for block in SERVED if "name" in block}
    run = Run(
        calls=[*Run().calls, *[[block["name"], block["input"]] for block in SERVED if "name" in block]],
        results=[*RESULTS[:2], NOTED, *[block["content"] for block in returned[:3]], {"lat": 60.4}, "no such place"],
        errors=[False, True, False, False, False, True, False, True],
        tools=[*SCHEMAS, *names],
    )
    keep(
        "anthropic",
        "messages",
        {**asked, **servers, "messages": messages},
        package="anthropic",
        run=run,
        image="/messages/4/content/1",
    )
    reply = client.messages.create(messages=messages[:1], **asked).model_dump(mode="json")
    two = first_reply(tools=[*SCHEMAS, "web_search"])
    keep(
        "exchange",
        "anthropic",
        {"request": {**asked, "messages": messages[:1]}, "response": reply},
        package="anthropic",
        run=two,
    )
    line = {"custom_id": "request-1", "result": {"type": "succeeded", "message": reply}}
    alone = first_reply(texts=Run().texts[1:2], tools=None)
    keep(
        "exchange",
        "anthropic_batch_line",
        line,
        package="anthropic",
        run=alone,
        documents="message batches",
    )
