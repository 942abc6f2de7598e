# /// script
# dependencies = [
#   "crewai==1.15.30",
# ]
# ///
"""CrewAI: the output of a crew, and the events of its tools."""

import json

from conversation import ANSWER, MODEL, QUESTION, get_order, write
from crewai import LLM, Agent, Crew, Task
from crewai.events import BaseEventListener, ToolUsageErrorEvent, ToolUsageFinishedEvent, ToolUsageStartedEvent
from crewai.tools import tool

events = []


class Keeper(BaseEventListener):
    """Keep the events of tools."""

    def setup_listeners(self, bus):
        for kind in (ToolUsageStartedEvent, ToolUsageFinishedEvent, ToolUsageErrorEvent):

            @bus.on(kind)
            def keep(_, event):
                events.append(event.to_json() if hasattr(event, "to_json") else event.model_dump(mode="json"))


keeper = Keeper()
agent = Agent(role="shop", goal="Answer the customer.", backstory="You look up orders.", llm=LLM(model=f"openai/{MODEL}"), tools=[tool("get_order")(get_order)])
task = Task(description=QUESTION, expected_output=ANSWER, agent=agent)
output = Crew(agents=[agent], tasks=[task]).kickoff()
write("crewai.json", output.model_dump_json(indent=1))
write("crewai_events.jsonl", "".join(json.dumps(event, default=str) + "\n" for event in events))
