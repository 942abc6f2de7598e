# /// script
# dependencies = [
#   "mlflow==3.17.2",
#   "openai==3.46.0",
# ]
# ///
"""MLflow: a trace of spans, whose model calls are logged by themselves."""

import json

import mlflow
from conversation import CALLS, INSTRUCTIONS, MODEL, QUESTION, TOOL, get_order, write
from mlflow.entities import SpanType
from openai import OpenAI

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.openai.autolog()
look_up = mlflow.trace(get_order, name="get_order", span_type=SpanType.TOOL)


@mlflow.trace(span_type=SpanType.AGENT)
def shop(question):
    """Answer a question: the loop is ours."""
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    for _ in range(len(CALLS) + 1):
        message = OpenAI().chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or ():
            try:
                result = json.dumps(look_up(**json.loads(call.function.arguments)))
            except LookupError as error:
                result = str(error)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return messages[-1]["content"]


shop(QUESTION)
write("mlflow.json", mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True).to_json(pretty=True))
