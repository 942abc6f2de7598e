"""LangChain messages of a langgraph agent, in each way they are serialised, and its runs as LangSmith gets them."""

from __future__ import annotations

import json
import os
from typing import Any

import server
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.load import dumpd
from langchain_core.messages import HumanMessage, ToolMessage, messages_to_dict
from langchain_core.tools import tool
from langchain_core.tracers.langchain import LangChainTracer
from langchain_openai import ChatOpenAI
from langsmith import Client
from script import PNG, QUESTIONS, REPLIES, RESULTS, Run, keep
from script import get_weather as weather
from script import write_note as note


@tool(response_format="content_and_artifact")
def get_weather(city: str) -> tuple[str, dict[str, Any]]:
    """The weather in a city."""
    return json.dumps(weather(city)), {"station": 17}


@tool
def write_note(text: str) -> str:
    """Writes a note."""
    return note(text)


@wrap_tool_call
def say_errors(request: Any, handler: Any) -> Any:
    try:
        return handler(request)
    except LookupError as error:
        return ToolMessage(
            str(error), tool_call_id=request.tool_call["id"], name=request.tool_call["name"], status="error"
        )


def asked(question: str) -> HumanMessage:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    return HumanMessage([{"type": "text", "text": question}, image] if question.startswith("Write") else question)


def merge(posted: Any) -> list[Any]:
    """The runs that were posted and patched, as LangSmith stores them."""
    runs: dict[str, Any] = {}
    for path, body in posted:
        for given in [*body.get("post", ()), *body.get("patch", ())] or [body]:
            id_ = given.get("id") or path.rsplit("/", 1)[1]
            known = {
                key: value
                for key, value in given.items()
                if value not in (None, {}, []) and key not in ("serialized", "events")
            }
            runs[id_] = runs.get(id_, {}) | known | {"id": id_}
    for given in runs.values():
        given["extra"] = {key: value for key, value in given.get("extra", {}).items() if key == "invocation_params"}
    return list(runs.values())


with server.serve() as url:
    os.environ["LANGSMITH_TRACING"] = "false"
    model = ChatOpenAI(model="gpt-4.1-mini", base_url=f"{url}/v1", api_key="x")
    agent = create_agent(model, [get_weather, write_note], middleware=[say_errors])
    client = Client(api_url=f"{url}/langsmith", api_key="x", auto_batch_tracing=False)
    messages: list[Any] = []
    exports: list[list[Any]] = []
    for question in QUESTIONS:
        server.POSTED.clear()
        tracer = LangChainTracer(client=client, project_name="weather")
        state = agent.invoke({"messages": [*messages, asked(question)]}, {"callbacks": [tracer]})
        messages = state["messages"]
        exports.append(merge(server.POSTED))
    run = Run(tools=None)
    keep(
        "langchain",
        "state",
        {"messages": [message.model_dump(mode="json") for message in messages]},
        package="langchain-core",
        run=run,
        image="/messages/5/content/1",
    )
    keep(
        "langchain",
        "messages_to_dict",
        {"messages": messages_to_dict(messages)},
        package="langchain-core",
        run=run,
        image="/messages/5/data/content/1",
    )
    keep(
        "langchain",
        "dumpd",
        {"messages": dumpd(messages)},
        package="langchain-core",
        run=run,
        image="/messages/5/kwargs/content/1",
    )
    bound = model.bind_tools([get_weather, write_note]).kwargs["tools"]
    keep(
        "langchain",
        "state_with_tools",
        {"messages": [message.model_dump(mode="json") for message in messages], "tools": bound},
        package="langchain-core",
        run=Run(),
        image="/messages/5/content/1",
    )

    first, last = exports[0], exports[-1]
    two = Run(Run().calls[:2], RESULTS[:2], [False, True], Run().texts[:3], REPLIES["station"].text)
    keep("langsmith", "runs", {"runs": first}, package="langsmith", run=two)
    keep(
        "langsmith",
        "llm_run",
        [given for given in last if given["run_type"] == "llm"][-1],
        package="langsmith",
        run=Run(),
        image="/inputs/messages/0/5/kwargs/content/1",
    )
    root = next(given for given in last if not given.get("parent_run_id"))
    keep("langsmith", "root_run", root, package="langsmith", run=Run(tools=None), image="/outputs/messages/5/content/1")
