"""What Langfuse's SDK sends of an agent with its OpenAI wrapper, in the shape of GET /api/public/traces/{id}."""

from __future__ import annotations

import json
import os
from typing import Any

import server
from script import ABOUT, QUESTIONS, SCHEMAS, SYSTEM, Run, get_weather, keep, write_note

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": ABOUT[name], "parameters": schema}}
    for name, schema in SCHEMAS.items()
]
SHAPE = "the API's traces and observations: all but inputs, outputs, names and types"
DOES = {"get_weather": get_weather, "write_note": write_note}

with server.serve() as url:
    os.environ |= {
        "LANGFUSE_BASE_URL": url,
        "LANGFUSE_HOST": url,
        "LANGFUSE_PUBLIC_KEY": "pk-x",
        "LANGFUSE_SECRET_KEY": "sk-x",
    }
    from langfuse import Langfuse
    from langfuse.openai import OpenAI
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    langfuse = Langfuse(tracer_provider=provider)
    client = OpenAI(base_url=f"{url}/v1", api_key="x")

    def use(call: Any) -> str:
        arguments = json.loads(call.function.arguments)
        with langfuse.start_as_current_observation(as_type="tool", name=call.function.name, input=arguments) as span:
            try:
                result = DOES[call.function.name](**arguments)
            except LookupError as error:
                span.update(level="ERROR", status_message=str(error))
                return str(error)
            span.update(output=result)
            return result if isinstance(result, str) else json.dumps(result)

    with langfuse.start_as_current_observation(as_type="agent", name="agent", input=list(QUESTIONS)) as agent:
        messages: list[Any] = [{"role": "system", "content": SYSTEM}]
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            while True:
                reply = (
                    client.chat.completions.create(model="gpt-4.1-mini", messages=messages, tools=TOOLS)
                    .choices[0]
                    .message
                )
                messages.append(reply.model_dump(exclude_none=True))
                if not reply.tool_calls:
                    break
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": use(call)} for call in reply.tool_calls
                ]
        agent.update(output=reply.content or reply.refusal)
    langfuse.flush()

    def value(text: Any) -> Any:
        try:
            return json.loads(text)
        except (TypeError, ValueError):
            return text

    def observation(span: Any) -> dict[str, Any]:
        given = {key.removeprefix("langfuse.observation."): item for key, item in span.attributes.items()}
        return {
            "id": f"{span.context.span_id:016x}",
            "traceId": f"{span.context.trace_id:032x}",
            "type": str(given["type"]).upper(),
            "name": span.name,
            "startTime": f"2026-01-01T00:00:00.{span.start_time % 10**9:09d}Z",
            "endTime": None,
            "parentObservationId": f"{span.parent.span_id:016x}" if span.parent else None,
            "level": given.get("level", "DEFAULT"),
            "statusMessage": given.get("status_message"),
            "model": given.get("model.name"),
            "input": value(given.get("input")),
            "output": value(given.get("output")),
        }

    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    trace = {
        "id": f"{spans[0].context.trace_id:032x}",
        "timestamp": "2026-01-01T00:00:00Z",
        "name": "agent",
        "projectId": "p",
        "tags": [],
        "input": list(QUESTIONS),
        "output": "",
        "observations": [observation(span) for span in spans],
        "scores": [],
    }
    trace["output"] = trace["observations"][0]["output"]
    for at, item in enumerate(trace["observations"]):
        item["startTime"] = f"2026-01-01T00:00:00.{at:03d}Z"
    run = Run(errors=[False] * 3, texts=Run().texts[:-1], answer="")  # the wrapper leaves refusals out
    keep("langfuse", "trace", trace, package="langfuse", run=run, documents=SHAPE)
    keep(
        "langfuse",
        "generation",
        [item for item in trace["observations"] if item["type"] == "GENERATION"][-1],
        package="langfuse",
        run=run,
        documents=SHAPE,
    )
