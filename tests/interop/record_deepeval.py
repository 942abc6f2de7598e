# /// script
# dependencies = [
#   "deepeval==4.3.1",
# ]
# ///
"""DeepEval: a test case, under both names of its fields, and a conversation."""

from conversation import ANSWER, CALLS, ORDERS, QUESTION, write
from deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn

results = (ORDERS["A-1001"], {"error": "there is no order A-2002"})
tools = [
    ToolCall(name="get_order", input_parameters=call, output=result)
    for call, result in zip(CALLS, results, strict=True)
]
expected = [ToolCall(name="get_order", input_parameters=call) for call in CALLS]
case = LLMTestCase(input=QUESTION, actual_output=ANSWER, tools_called=tools, expected_tools=expected)
write("deepeval_case.json", case.model_dump_json(indent=1))
write("deepeval_case_aliases.json", case.model_dump_json(indent=1, by_alias=True))
turns = [Turn(role="user", content=QUESTION), Turn(role="assistant", content=ANSWER, tools_called=tools)]
conversation = ConversationalTestCase(scenario="A customer asks for two orders.", turns=turns)
write("deepeval_turns.json", conversation.model_dump_json(indent=1))
