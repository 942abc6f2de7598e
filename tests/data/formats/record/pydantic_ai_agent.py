"""The history of a pydantic-ai agent, as ModelMessagesTypeAdapter dumps it."""

from __future__ import annotations

import base64
import json
from typing import Any

from openai.types.responses import Response
from pydantic_ai import Agent, BinaryContent, CodeExecutionTool, MCPServerTool, ModelRetry, WebSearchTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from script import PNG, QUESTIONS, REPLIES, RESULTS, SYSTEM, Run, keep, write_note
from script import get_weather as weather
from server import serve

Response.prompt_cache_diagnostics = None  # the client here is older than what pydantic-ai looks for


def get_weather(city: str) -> dict[str, object]:
    """The weather in a city."""
    try:
        return weather(city)
    except LookupError as error:
        raise ModelRetry(str(error)) from None


KNOWN: dict[str, Any] = {"tools": None, "texts": Run().texts[:-2], "answer": REPLIES["noted"].text}


def read_hosted(parts: list[dict[str, Any]]) -> Run:
    """The run with the tools that the provider ran, as the server said; pydantic-ai leaves some of its items out."""
    hosted = [
        ["web_search", {"type": "search", "query": "Bergen station"}],
        ["file_search", {"queries": ["Bergen"]}],
        ["code_execution", {"container_id": "c1", "code": "print(4)"}],
        ["image_generation", {}],
        ["find_place", {"name": "Bergen"}],
        ["find_place", {"name": "Atlantis"}],
    ]
    own = [
        part["content"]
        for part in parts
        if part["part_kind"] == "builtin-tool-return" and not part["tool_name"].startswith("mcp")
    ]
    results = [*RESULTS, *own, {"lat": 60.4}, "no such place"]
    return Run(calls=[*Run().calls, *hosted], results=results, errors=[False, True, *[False] * 6, True], **KNOWN)


with serve() as url:
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="x")
    maps = MCPServerTool(id="maps", url="https://maps.invalid")
    agents = {
        "chat": Agent(
            OpenAIChatModel("gpt-4.1-mini", provider=provider), system_prompt=SYSTEM, tools=[get_weather, write_note]
        ),
        "hosted": Agent(
            OpenAIResponsesModel("gpt-5-mini", provider=provider),
            instructions=SYSTEM,
            tools=[get_weather, write_note],
            capabilities=[NativeTool(WebSearchTool()), NativeTool(maps), NativeTool(CodeExecutionTool())],
        ),
    }
    for name, agent in agents.items():
        history = []
        for question in QUESTIONS[:2]:  # it raises where a model refuses
            image = [BinaryContent(base64.b64decode(PNG), media_type="image/png")]
            asked = [question, *image] if question.startswith("Write") else question
            history = agent.run_sync(asked, message_history=history).all_messages()
        dumped = json.loads(ModelMessagesTypeAdapter.dump_json(history))
        hosted = name == "hosted"
        run = read_hosted(dumped[-1]["parts"]) if hosted else Run(**KNOWN)
        lost = [("text", "/messages/7/parts/7")] if hosted else []  # the image that was made
        shown = "/messages/4/parts/0/content/1"
        keep("pydantic_ai", name, {"messages": dumped}, package="pydantic-ai", run=run, unread=lost, image=shown)
