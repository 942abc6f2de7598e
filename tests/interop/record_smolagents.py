# /// script
# dependencies = [
#   "smolagents[openai]==1.26.0",
# ]
# ///
"""smolagents: the memory of an agent that calls tools, and of one that writes code."""

import json

from conversation import ANSWER, MODEL, QUESTION, get_order, write
from smolagents import CodeAgent, Model, OpenAIServerModel, ToolCallingAgent, tool
from smolagents.models import ChatMessage, MessageRole

LINES = ('print(get_order(order_id="A-1001"))', 'print(get_order(order_id="A-2002"))', f"final_answer({ANSWER!r})")


class Caller(OpenAIServerModel):
    """A model that says which turn it is: the messages do not have the calls that failed."""

    turn = 0

    def generate(self, *given, **settings):
        self.turn += 1
        return super().generate(*given, **settings, seed=self.turn - 1)


class Coder(Model):
    """A model that says its lines, as code."""

    def generate(self, messages, **_):
        turn = sum(one.role == MessageRole.ASSISTANT for one in messages)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Next.\n<code>\n{LINES[turn]}\n</code>")


for name, build in (
    ("calls", lambda tools: ToolCallingAgent(tools=tools, model=Caller(MODEL), verbosity_level=0)),
    ("code", lambda tools: CodeAgent(tools=tools, model=Coder(), verbosity_level=0)),
):
    agent = build([tool(get_order)])
    agent.run(QUESTION)
    for step in agent.memory.steps:
        step.model_input_messages = None  # each repeats the prompt, of 10,000 characters
    steps = agent.memory.get_succinct_steps()
    write(f"smolagents_{name}.json", json.dumps(steps, indent=1, default=str))
