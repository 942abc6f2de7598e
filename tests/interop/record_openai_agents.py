# /// script
# dependencies = [
#   "openai-agents==0.24.0",
# ]
# ///
"""OpenAI Agents SDK: the items of a run (both APIs), and its trace as a processor gets it."""

import json

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_trace_processors
from agents.tracing import TracingProcessor
from conversation import INSTRUCTIONS, MODEL, QUESTION, get_order, write
from openai import AsyncOpenAI

exported = []


class Keeper(TracingProcessor):
    """Keep what a tracing backend would be sent."""

    def on_trace_start(self, trace):
        exported.append(trace)

    def on_span_end(self, span):
        exported.append(span)

    def on_trace_end(self, trace):
        pass

    def on_span_start(self, span):
        pass

    def shutdown(self):
        pass

    def force_flush(self):
        pass


tool = function_tool(get_order)
set_trace_processors([Keeper()])
for api, model in (("responses", MODEL), ("chat", OpenAIChatCompletionsModel(MODEL, AsyncOpenAI()))):
    exported.clear()
    agent = Agent(name="shop", instructions=INSTRUCTIONS, tools=[tool], model=model)
    result = Runner.run_sync(agent, QUESTION)
    write(f"openai_agents_{api}_items.json", json.dumps(result.to_input_list(), indent=1))
    lines = [json.dumps(one.export()) for one in exported]
    write(f"openai_agents_{api}_trace.jsonl", "\n".join(lines) + "\n")
