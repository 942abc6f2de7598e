# /// script
# dependencies = [
#   "crewai==1.15.30",
# ]
# ///
"""CrewAI: the output of a crew."""

from conversation import ANSWER, MODEL, QUESTION, get_order, write
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

agent = Agent(
    role="shop",
    goal="Answer the customer.",
    backstory="You look up orders.",
    llm=LLM(model=f"openai/{MODEL}"),
    tools=[tool("get_order")(get_order)],
)
task = Task(description=QUESTION, expected_output=ANSWER, agent=agent)
output = Crew(agents=[agent], tasks=[task]).kickoff()
write("crewai.json", output.model_dump_json(indent=1))
