"""Makes the fixtures beside it: runs a framework under an instrumentation against a model that says what a script says.

    python record.py NAME    in an environment that has the packages which the fixture NAME.json names

Nothing leaves the machine: the model is an OpenAI-compatible server on a local port. Fixtures are trimmed: resources, links,
stack traces, metadata and what chains and agents repeat of the messages within them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SYSTEM = "You help customers."
USER = "Is order A-17 late, and how warm is it in Oslo? Refund 12.5 if it is late."
ATTEMPT = "The order is late, so I try the refund."
ANSWER = "Order A-17 is late and comes on 2026-03-06. Oslo has 4 degrees. The refund was refused: it needs a manager."
REFUSAL = "a refund needs a manager"
CALLS = [
    ("call_order", "get_order", {"order_id": "A-17"}),
    ("call_weather", "get_weather", {"city": "Oslo", "unit": "celsius"}),
    ("call_refund", "refund_order", {"order_id": "A-17", "amount": 12.5}),
]
RESULTS: dict[str, Any] = {
    "get_order": {"order_id": "A-17", "status": "late", "due": "2026-03-06"},
    "get_weather": {"city": "Oslo", "degrees": 4},
}
TYPES = {
    "get_order": {"order_id": "string"},
    "get_weather": {"city": "string", "unit": "string"},
    "refund_order": {"order_id": "string", "amount": "number"},
}


def get_order(order_id: str) -> dict:
    """The state of an order.

    Args:
        order_id: Its number.
    """
    return RESULTS["get_order"]


def get_weather(city: str, unit: str) -> dict:
    """How warm it is in a city.

    Args:
        city: The city.
        unit: celsius or fahrenheit.
    """
    return RESULTS["get_weather"]


def refund_order(order_id: str, amount: float) -> str:
    """Pay money back.

    Args:
        order_id: Its number.
        amount: In euros.
    """
    raise ValueError(REFUSAL)


TOOLS = [get_order, get_weather, refund_order]


def definitions() -> list[Any]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.__name__,
                "description": (tool.__doc__ or "").split("\n")[0],
                "parameters": {
                    "type": "object",
                    "properties": {name: {"type": kind} for name, kind in TYPES[tool.__name__].items()},
                    "required": list(TYPES[tool.__name__]),
                },
            },
        }
        for tool in TOOLS
    ]


# The model.


def reply(done: int) -> tuple[str | None, list[Any]]:
    """What the model says once so many tools have answered: a text and calls."""
    if done == 0:
        return None, CALLS[:2]
    return (ATTEMPT, CALLS[2:]) if done == 2 else (ANSWER, [])


def chat_message(text: str | None, calls: list[Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, name, arguments in calls
        ]
    return message


def answer_chat(body: Any) -> dict[str, Any]:
    done = sum(message["role"] == "tool" for message in body["messages"])
    message = chat_message(*reply(done))
    return completion(message, done)


def completion(message: dict[str, Any], done: int = 0) -> dict[str, Any]:
    why = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": f"chatcmpl-{done}",
        "object": "chat.completion",
        "created": 1760000000,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": why, "logprobs": None}],
        "usage": {"prompt_tokens": 100 + 20 * done, "completion_tokens": 30, "total_tokens": 130 + 20 * done},
    }


def answer_responses(body: Any) -> dict[str, Any]:
    items = body["input"] if isinstance(body["input"], list) else []
    done = sum(item.get("type") == "function_call_output" for item in items)
    text, calls = reply(done)
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"type": "message", "id": f"msg_{done}", "role": "assistant", "status": "completed", "content": [part]}
    made = [
        {
            "type": "function_call",
            "id": "fc_" + call_id,
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for call_id, name, arguments in calls
    ]
    return {
        "id": f"resp_{done}",
        "object": "response",
        "created_at": 1760000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "model": "gpt-4o-mini-2024-07-18",
        "output": [*([said] if text else []), *made],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "metadata": {},
        "text": {"format": {"type": "text"}},
        "truncation": "disabled",
        "usage": {
            "input_tokens": 100 + 20 * done,
            "output_tokens": 30,
            "total_tokens": 130 + 20 * done,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def stream(completed: Any) -> bytes:
    """A completion as the chunks of a stream."""
    choice = completed["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(delta["tool_calls"])]
    chunk = {**completed, "object": "chat.completion.chunk"}
    chunks = [
        {**chunk, "usage": None, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "usage": None, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**chunk, "choices": []},
    ]
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"


class Model(BaseHTTPRequestHandler):
    """The scripted model. A run that speaks otherwise puts its own `chat` in place."""

    chat: Callable[[Any], dict[str, Any]] = staticmethod(answer_chat)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answered = answer_responses(body) if self.path.endswith("/responses") else type(self).chat(body)
        streamed = bool(body.get("stream"))
        data = stream(answered) if streamed else json.dumps(answered).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve() -> str:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    os.environ.update(
        OPENAI_BASE_URL=url,
        OPENAI_API_BASE=url,
        OPENAI_API_KEY="none",
        NO_PROXY="127.0.0.1",
        CREWAI_DISABLE_TELEMETRY="true",
        CREWAI_TRACING_ENABLED="false",
        TRACELOOP_TELEMETRY="false",
        TRACELOOP_TRACE_CONTENT="true",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
    )
    return url


# The runs: each gives the packages that matter.


def openai_client(url: str) -> None:
    import openai
    from opentelemetry import trace

    client = openai.OpenAI()
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    with trace.get_tracer("app").start_as_current_span("handle request"):
        while True:
            made = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=definitions())
            message = made.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                content = run_tool(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def run_tool(name: str, arguments: Any) -> str:
    try:
        return json.dumps({tool.__name__: tool for tool in TOOLS}[name](**arguments))
    except ValueError as error:
        return f"Error: {error}"


def openai_agents(url: str, *, responses: bool) -> None:
    import agents
    from openai import AsyncOpenAI

    model = agents.OpenAIResponsesModel if responses else agents.OpenAIChatCompletionsModel
    tools = [agents.function_tool(tool) for tool in TOOLS]
    agent = agents.Agent("helper", instructions=SYSTEM, tools=tools, model=model("gpt-4o-mini", AsyncOpenAI()))
    agents.Runner.run_sync(agent, USER)


def openai_agents_chat(url: str) -> None:
    openai_agents(url, responses=False)


def openai_agents_responses(url: str) -> None:
    openai_agents(url, responses=True)


def pydantic_ai(url: str, settings: Any) -> None:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.openai import OpenAIChatModel

    def refund_order(order_id: str, amount: float) -> str:
        """Pay money back."""
        raise ModelRetry(REFUSAL)

    tools = [get_order, get_weather, refund_order]
    more: dict[str, Any] = {"instrument": settings}
    if settings.version > 1:
        from pydantic_ai.capabilities import Instrumentation

        more = {"capabilities": [Instrumentation(settings=settings)]}
    Agent(OpenAIChatModel("gpt-4o-mini"), tools=tools, system_prompt=SYSTEM, **more).run_sync(USER)


def langgraph(url: str) -> None:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import ToolNode, create_react_agent

    tools = ToolNode([tool(one) for one in TOOLS], handle_tool_errors=True)
    create_react_agent(ChatOpenAI(model="gpt-4o-mini"), tools, prompt=SYSTEM).invoke({"messages": [("user", USER)]})


def llama_index(url: str) -> None:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike

    llm = OpenAILike("gpt-4o-mini", api_base=url, api_key="none", is_chat_model=True, is_function_calling_model=True)

    async def go() -> None:
        await FunctionAgent(tools=TOOLS, llm=llm, system_prompt=SYSTEM, streaming=False).run(USER)

    asyncio.run(go())


def smolagents(url: str) -> None:
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    final = ("call_final", "final_answer", {"answer": ANSWER})
    replies = [reply(0), reply(2), (None, [final])]
    Model.chat = staticmethod(lambda _: completion(chat_message(*replies.pop(0))))
    model = OpenAIServerModel("gpt-4o-mini", api_base=url, api_key="none")
    ToolCallingAgent(tools=[tool(one) for one in TOOLS], model=model).run(USER)


def autogen(url: str) -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    agent = AssistantAgent("helper", client, tools=TOOLS, system_message=SYSTEM, max_tool_iterations=5)
    asyncio.run(agent.run(task=USER))


def dspy(url: str) -> None:
    import dspy as library

    steps = [*[(name, arguments) for _, name, arguments in CALLS], ("finish", {})]

    def chat(body: Any) -> dict[str, Any]:
        if "next_tool_name" not in body["messages"][0]["content"]:
            fields = {"reasoning": "All is known.", "answer": ANSWER}
        else:
            name, arguments = steps.pop(0)
            fields = {"next_thought": "Next.", "next_tool_name": name, "next_tool_args": json.dumps(arguments)}
        text = "".join(f"[[ ## {key} ## ]]\n{value}\n\n" for key, value in fields.items())
        return completion(chat_message(text + "[[ ## completed ## ]]", []))

    Model.chat = staticmethod(chat)
    library.configure(lm=library.LM("openai/gpt-4o-mini", api_base=url, api_key="none", cache=False))
    library.ReAct("question -> answer", tools=TOOLS)(question=USER)


def strands(url: str) -> None:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": url, "api_key": "none"}, model_id="gpt-4o-mini")
    Agent(model=model, tools=[tool(one) for one in TOOLS], system_prompt=SYSTEM, callback_handler=None)(USER)


def crewai(url: str) -> None:
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    llm = LLM(model="openai/gpt-4o-mini", base_url=url, api_key="none")
    tools = [tool(one.__name__)(one) for one in TOOLS]
    agent = Agent(role="helper", goal=SYSTEM, backstory="You are kind.", tools=tools, llm=llm)
    Crew(agents=[agent], tasks=[Task(description=USER, expected_output="An answer.", agent=agent)]).kickoff()


def langsmith(url: str) -> None:
    from langchain_core.tracers.langchain import wait_for_all_tracers

    os.environ.update(LANGSMITH_OTEL_ENABLED="true", LANGSMITH_TRACING="true", LANGSMITH_OTEL_ONLY="true")
    os.environ.update(LANGSMITH_API_KEY="none", LANGSMITH_ENDPOINT=url)
    langgraph(url)
    wait_for_all_tracers()


# What the conventions document, made with the SDK.


def documented(url: str, write: Callable[[Any, list[Any], Any], None], *, attributes: bool) -> None:
    from opentelemetry import trace

    tracer = trace.get_tracer("app")
    history: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    done, calls = 0, [CALLS[0]]
    with tracer.start_as_current_span("invoke_agent helper", attributes={"gen_ai.operation.name": "invoke_agent"}):
        while calls:
            text, calls = reply(done)
            message = {key: value for key, value in chat_message(text, calls).items() if value}
            with tracer.start_as_current_span("chat gpt-4o-mini") as span:
                span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"})
                span.set_attributes({"gen_ai.usage.input_tokens": 100 + 20 * done, "gen_ai.usage.output_tokens": 30})
                span.set_attribute("gen_ai.response.finish_reasons", ["tool_calls" if calls else "stop"])
                write(span, history, message)
            history.append(message)
            for call_id, name, arguments in calls:
                content = documented_tool(tracer, call_id, name, arguments, attributes=attributes)
                history.append({"role": "tool", "tool_call_id": call_id, "content": content})
                done += 1


def documented_tool(tracer: Any, call_id: str, name: str, arguments: Any, *, attributes: bool) -> str:
    known = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=known) as span:
        content = run_tool(name, arguments)
        if content.startswith("Error"):
            span.set_attribute("error.type", "ValueError")
        if attributes:
            told = {"gen_ai.tool.call.arguments": json.dumps(arguments), "gen_ai.tool.call.result": content}
            span.set_attributes(told)
        return content


def content_events(span: Any, history: list[Any], message: Any) -> None:
    span.add_event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(history)})
    span.add_event("gen_ai.content.completion", {"gen_ai.completion": json.dumps([message])})


def message_events(span: Any, history: list[Any], message: Any) -> None:
    for one in history:
        told = {key: value if isinstance(value, str) else json.dumps(value) for key, value in one.items()}
        told = {("id" if key == "tool_call_id" else key): value for key, value in told.items() if key != "role"}
        span.add_event(f"gen_ai.{one['role']}.message", {"gen_ai.system": "openai", **told})
    span.add_event("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps(message)})


def operation_details(span: Any, history: list[Any], message: Any) -> None:
    told = {
        "gen_ai.system_instructions": [{"type": "text", "content": SYSTEM}],
        "gen_ai.input.messages": [in_parts(one) for one in history[1:]],
        "gen_ai.output.messages": [{**in_parts(message), "finish_reason": "stop"}],
        "gen_ai.tool.definitions": [{"type": "function", **one["function"]} for one in definitions()],
    }
    told = {key: json.dumps(value) for key, value in told.items()}
    span.add_event("gen_ai.client.inference.operation.details", told)


def in_parts(message: Any) -> Any:
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts = [{"type": "text", "content": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls", []):
        made = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
        parts.append({"type": "tool_call", "id": call["id"], **made})
    return {"role": message["role"], "parts": parts}


# The instrumentations.


def instrument(module: str, name: str) -> Callable[[Any], None]:
    def go(provider: Any) -> None:
        instrumentor = getattr(__import__(module, fromlist=[name]), name)
        instrumentor().instrument(tracer_provider=provider)

    return go


def logfire(method: str) -> Callable[[Any], None]:
    def go(provider: Any) -> None:
        import logfire as library

        processors = [provider.processor]
        library.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
        getattr(library, method)()

    return go


def pydantic_settings(provider: Any, form: int) -> Any:
    from pydantic_ai.models.instrumented import InstrumentationSettings

    return InstrumentationSettings(version=form, tracer_provider=provider)


OPENINFERENCE, OPENLLMETRY = "openinference.instrumentation.", "opentelemetry.instrumentation."
OPENAI_OI = instrument(OPENINFERENCE + "openai", "OpenAIInstrumentor")
NONE: list[Any] = []

Row = tuple[list[Callable[[Any], None]], Callable[[str], None], list[str], dict[str, Any]]

AGENTS_ERROR = {"refusal": "An error occurred while running the tool. Please try again."}
NO_TOOLS = {"lacks": ["tools"]}
CLIENT = {"lacks": ["errors"]}

RUNS: dict[str, Row] = {
    "openai_openinference": ([OPENAI_OI], openai_client, ["openinference-instrumentation-openai", "openai"], CLIENT),
    "openai_openllmetry": (
        [instrument(OPENLLMETRY + "openai", "OpenAIInstrumentor")],
        openai_client,
        ["opentelemetry-instrumentation-openai", "openai"],
        CLIENT,
    ),
    "openai_logfire": ([logfire("instrument_openai")], openai_client, ["logfire", "openai"], CLIENT),
    "openai_v2": (
        [instrument(OPENLLMETRY + "openai_v2", "OpenAIInstrumentor")],
        openai_client,
        ["opentelemetry-instrumentation-openai-v2", "openai"],
        {"lacks": ["calls", "answer", "tools"]},
    ),
    "langchain_openinference": (
        [instrument(OPENINFERENCE + "langchain", "LangChainInstrumentor")],
        langgraph,
        ["openinference-instrumentation-langchain", "langgraph", "langchain-core"],
        {},
    ),
    "langchain_openllmetry": (
        [instrument(OPENLLMETRY + "langchain", "LangchainInstrumentor")],
        langgraph,
        ["opentelemetry-instrumentation-langchain", "langgraph", "langchain-core"],
        {},
    ),
    "langchain_langsmith": (NONE, langsmith, ["langsmith", "langgraph", "langchain-core"], {}),
    "llama_index_openinference": (
        [instrument(OPENINFERENCE + "llama_index", "LlamaIndexInstrumentor")],
        llama_index,
        ["openinference-instrumentation-llama-index", "llama-index-core"],
        {},
    ),
    "smolagents_openinference": (
        [instrument(OPENINFERENCE + "smolagents", "SmolagentsInstrumentor")],
        smolagents,
        ["openinference-instrumentation-smolagents", "smolagents"],
        {"more": [["call_final", "final_answer", {"answer": ANSWER}, ANSWER]]},
    ),
    "autogen_native": (
        NONE,
        autogen,
        ["autogen-agentchat", "autogen-core"],
        {"lacks": ["arguments", "results", "answer", "tools"]},
    ),
    "autogen_openinference": (
        [OPENAI_OI, instrument(OPENINFERENCE + "autogen_agentchat", "AutogenAgentChatInstrumentor")],
        autogen,
        [
            "openinference-instrumentation-autogen-agentchat",
            "openinference-instrumentation-openai",
            "autogen-agentchat",
        ],
        NO_TOOLS,
    ),
    "dspy_openinference": (
        [instrument(OPENINFERENCE + "dspy", "DSPyInstrumentor")],
        dspy,
        ["openinference-instrumentation-dspy", "dspy"],
        {"lacks": ["ids", "tools"], "more": [[None, "finish", {}, "Completed."]]},
    ),
    "strands_native": (NONE, strands, ["strands-agents"], NO_TOOLS),
    "crewai_openinference": (
        [OPENAI_OI, instrument(OPENINFERENCE + "crewai", "CrewAIInstrumentor")],
        crewai,
        ["openinference-instrumentation-crewai", "openinference-instrumentation-openai", "crewai"],
        {},
    ),
}
for _form, _run in (("", openai_agents_chat), ("_responses", openai_agents_responses)):
    _lacks = {} if _form else NO_TOOLS
    RUNS |= {
        f"agents{_form}_openinference": (
            [instrument(OPENINFERENCE + "openai_agents", "OpenAIAgentsInstrumentor")],
            _run,
            ["openinference-instrumentation-openai-agents", "openai-agents"],
            {**AGENTS_ERROR, **_lacks},
        ),
        f"agents{_form}_openllmetry": (
            [instrument(OPENLLMETRY + "openai_agents", "OpenAIAgentsInstrumentor")],
            _run,
            ["opentelemetry-instrumentation-openai-agents", "openai-agents"],
            {**AGENTS_ERROR, **({} if _form else {"lacks": ["answer", "tools"]})},
        ),
        f"agents{_form}_logfire": (
            [logfire("instrument_openai_agents")],
            _run,
            ["logfire", "openai-agents"],
            {**AGENTS_ERROR, **_lacks},
        ),
    }
for _name in ("openai_openllmetry", "langchain_openllmetry"):
    RUNS[f"{_name}_old"] = RUNS[_name]

DOCUMENTED: dict[str, tuple[Callable[[Any, list[Any], Any], None], dict[str, Any]]] = {
    "genai_1_27": (content_events, NO_TOOLS),
    "genai_1_28": (message_events, NO_TOOLS),
    "genai_1_37": (operation_details, {}),
}


def execute(name: str, provider: Any, url: str) -> tuple[list[str], dict[str, Any]]:
    if name.startswith("pydantic_ai_v"):
        pydantic_ai(url, pydantic_settings(provider, int(name.removeprefix("pydantic_ai_v"))))
        return ["pydantic-ai-slim"], {}
    if name in DOCUMENTED:
        write, head = DOCUMENTED[name]
        documented(url, write, attributes=name == "genai_1_37")
        return [], {"from": "documentation", **head}
    instrumentors, run, packages, head = RUNS[name]
    for one in instrumentors:
        one(provider)
    run(url)
    return packages, head


# From spans to a fixture.

NOISE = re.compile(
    r"(langsmith\.(metadata|span\.tags|trace)|traceloop\.association|logfire\.json_schema|metadata$|code\.|gen_ai\.task\."
    r"|server\.|model_config|model_settings|gen_ai\.openai\.api_base|llm\.invocation_parameters|gen_ai\.agent\.|graph\.)"
)
IDS = ("traceId", "spanId", "parentSpanId")
SPAN = (*IDS, "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "status")


def trim(span: Any, name: str) -> Any:
    noise = NOISE if name == "pydantic_ai_v1" else re.compile(NOISE.pattern + "|model_request_parameters")
    attributes = [one for one in span.get("attributes", []) if not noise.match(one["key"])]
    kinds = {one["value"].get("stringValue") for one in attributes if one["key"].endswith("span.kind")}
    for one in attributes:
        repeats = kinds & {"CHAIN", "AGENT", "task", "workflow", "chain"} and not one["key"].startswith("llm.")
        repeats = repeats or ("LLM" in kinds and one["key"] in ("input.value", "output.value"))
        text = one["value"].get("stringValue", "")
        if repeats and len(text) > 140:
            one["value"] = {"stringValue": text[:140] + "..."}
    kept = {key: span[key] for key in SPAN if key in span} | {"attributes": attributes}
    return kept | ({"events": span["events"]} if span.get("events") else {})


def export(spans: Any, name: str) -> Any:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    listed = [
        span
        for resource in MessageToDict(encode_spans(spans), use_integers_for_enums=True)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    for span in listed:
        span.update({key: base64.b64decode(span[key]).hex() for key in IDS if key in span})
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [trim(span, name) for span in listed]}]}]}
    text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1", json.dumps(body))
    text = re.sub(r'\s*Traceback \(most recent.*?(?=(?<!\\)")', "", text)
    return json.loads(text)


def describe(head: dict[str, Any]) -> dict[str, Any]:
    """What the run really had, and what of it the export `lacks`."""
    refusal = head.pop("refusal", REFUSAL)
    calls = [[call_id, name, arguments, RESULTS.get(name, refusal)] for call_id, name, arguments in CALLS]
    calls += head.pop("more", [])
    keys = ("id", "name", "arguments", "result", "is_error")
    listed = [dict(zip(keys, [*call, call[1] == "refund_order"], strict=True)) for call in calls]
    lacks = head.pop("lacks", [])
    return {"calls": listed, "answer": ANSWER, "tools": [*TYPES], "lacks": lacks}


def main(name: str) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.processor = SimpleSpanProcessor(memory)  # pyright: ignore[reportAttributeAccessIssue]
    provider.add_span_processor(provider.processor)  # pyright: ignore[reportAttributeAccessIssue]
    trace.set_tracer_provider(provider)
    packages, head = execute(name, provider, serve())
    head = dict(head)
    run = describe(head)
    body = export(memory.get_finished_spans(), name)
    versions = {package: version(package) for package in [*packages, "opentelemetry-sdk"]}
    fixture = {"packages": versions, "made_by": f"record.py {name}", **head, "run": run, "export": body}
    text = json.dumps(fixture, separators=(",", ":"))
    for mark in ('{"traceId"', '"run":', '"export":'):
        text = text.replace(mark, "\n" + mark)
    (HERE / f"{name}.json").write_text(text + "\n")
    if name == "pydantic_ai_v6":
        write_forms(memory.get_finished_spans())


def write_forms(spans: Any) -> None:
    """One run in every form that an exporter writes."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    for span in spans:
        span._events = ()  # they name paths of the machine
    message = encode_spans(spans).SerializeToString()
    forms = HERE / "forms"
    forms.mkdir(exist_ok=True)
    (forms / "request.pb").write_bytes(message)
    batches = [encode_spans(spans[:3]), encode_spans(spans[3:])]
    parts = [batch.SerializeToString() for batch in batches]
    (forms / "collector.pb").write_bytes(b"".join(len(part).to_bytes(4, "big") + part for part in parts))
    lines = [MessageToDict(batch, use_integers_for_enums=True) for batch in batches]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    hexed = re.sub(rf'("(?:{"|".join(IDS)})":)"([^"]+)"', lambda m: f'{m[1]}"{base64.b64decode(m[2]).hex()}"', text)
    (forms / "collector.jsonl").write_text(hexed)
    flat = [json.loads(span.to_json(indent=None)) for span in spans]
    (forms / "sdk.json").write_text(json.dumps(flat, indent=1) + "\n")
    (forms / "sdk.jsonl").write_text("".join(json.dumps(one) + "\n" for one in flat))


if __name__ == "__main__":
    main(sys.argv[1])
