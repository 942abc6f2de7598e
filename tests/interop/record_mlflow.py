# /// script
# dependencies = [
#   "mlflow==3.17.2",
#   "openai==3.46.0",
# ]
# ///
"""MLflow: a trace of spans, whose model calls are logged by themselves."""

import mlflow
from conversation import QUESTION, converse, get_order, write
from mlflow.entities import SpanType
from openai import OpenAI

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.openai.autolog()
look_up = mlflow.trace(get_order, name="get_order", span_type=SpanType.TOOL)


@mlflow.trace(span_type=SpanType.AGENT)
def shop(question):
    """Answer a question: the loop is ours."""
    return converse(OpenAI(), look_up, question)[-1]["content"]


shop(QUESTION)
write("mlflow.json", mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True).to_json(pretty=True))
