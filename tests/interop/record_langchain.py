# /// script
# dependencies = [
#   "langchain==1.4.9",
#   "langchain-core==1.7.6",
#   "langgraph==1.2.20",
#   "langchain-openai==1.7.4",
# ]
# ///
"""LangChain and LangGraph: the state of an agent, in the forms that its messages are written in."""

import json

from conversation import INSTRUCTIONS, MODEL, QUESTION, get_order, write
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.load import dumps
from langchain_core.messages import ToolMessage, messages_to_dict
from langchain_core.tools import tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_openai import ChatOpenAI


@wrap_tool_call
def tell_errors(request, handler):
    """Return a failed call's error to the model."""
    try:
        return handler(request)
    except LookupError as error:
        return ToolMessage(str(error), tool_call_id=request.tool_call["id"], name="get_order", status="error")


agent = create_agent(
    ChatOpenAI(model=MODEL), tools=[tool(get_order)], system_prompt=INSTRUCTIONS, middleware=[tell_errors]
)
runs = RunCollectorCallbackHandler()
state = agent.invoke({"messages": [("user", QUESTION)]}, {"callbacks": [runs]})
write("langchain_to_dict.json", messages_to_dict(state["messages"]))
write("langchain_dumps.json", dumps(state, pretty=True))
write("langchain_model_dump.json", json.dumps([message.model_dump() for message in state["messages"]], indent=1))

write("langchain_root_run.json", json.dumps(runs.traced_runs[0].model_dump(mode="json"), indent=1))
