"""A trace of MLflow: an agent's loop with automatic logging of the OpenAI client."""

from __future__ import annotations

import json
import tempfile
from typing import Any

import mlflow
from mlflow.entities import SpanType
from openai import OpenAI
from script import ABOUT, QUESTIONS, SCHEMAS, SYSTEM, Run, get_weather, keep, write_note
from server import serve

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": ABOUT[name], "parameters": schema}}
    for name, schema in SCHEMAS.items()
]
DOES = {"get_weather": get_weather, "write_note": write_note}


def use(call: Any) -> str:
    with mlflow.start_span(call.function.name, span_type=SpanType.TOOL) as span:
        arguments = json.loads(call.function.arguments)
        span.set_inputs(arguments)
        try:
            result = DOES[call.function.name](**arguments)
        except LookupError as error:
            span.record_exception(error)
            return str(error)
        span.set_outputs(result)
        return result if isinstance(result, str) else json.dumps(result)


@mlflow.trace(name="agent", span_type=SpanType.AGENT)
def converse(questions: list[str]) -> str:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    for question in questions:
        messages.append({"role": "user", "content": question})
        while True:
            reply = (
                client.chat.completions.create(model="gpt-4.1-mini", messages=messages, tools=TOOLS).choices[0].message
            )
            messages.append(reply.model_dump(exclude_none=True))
            if not reply.tool_calls:
                break
            messages += [{"role": "tool", "tool_call_id": call.id, "content": use(call)} for call in reply.tool_calls]
    return reply.content or reply.refusal


with serve() as url, tempfile.TemporaryDirectory() as folder:
    client = OpenAI(base_url=f"{url}/v1", api_key="x")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/m.db")
    mlflow.openai.autolog()
    converse(list(QUESTIONS))
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True)
    record = json.loads(trace.to_json())
    for dull in ("tags", "trace_metadata"):  # paths and names of this machine
        record["info"].pop(dull)
    keep("mlflow", "trace", record, package="mlflow", run=Run(errors=[False] * 3))
    mlflow.openai.autolog(disable=True)
