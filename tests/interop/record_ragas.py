# /// script
# dependencies = [
#   "ragas==0.4.3",
#   "langchain-community==0.3.31",
# ]
# ///
"""ragas: a conversation of several turns with its gold, as the dataset writes it to a file."""

from pathlib import Path

from conversation import ANSWER, CALLS, ORDERS, QUESTION, write
from ragas import EvaluationDataset, MultiTurnSample
from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

first, second = (ToolCall(name="get_order", args=call) for call in CALLS)
sample = MultiTurnSample(
    user_input=[
        HumanMessage(content=QUESTION),
        AIMessage(content="", tool_calls=[first]),
        ToolMessage(content=str(ORDERS["A-1001"])),
        AIMessage(content="", tool_calls=[second]),
        ToolMessage(content="there is no order A-2002"),
        AIMessage(content=ANSWER),
    ],
    reference_tool_calls=[first, second],
    reference="A-1001 was shipped; A-2002 is unknown.",
)
dataset = EvaluationDataset(samples=[sample])
dataset.to_jsonl("samples.jsonl")
write("ragas.jsonl", Path("samples.jsonl").read_bytes())
write("ragas_sample.json", sample.model_dump_json(indent=1))
