"""Logs of which there is no package to run: written from documents."""

from __future__ import annotations

import json
from typing import Any

from script import ABOUT, QUESTIONS, REFUSAL, REPLIES, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep

TOOLS = [{"name": name, "description": ABOUT[name], "parameters": schema} for name, schema in SCHEMAS.items()]
CALLS = Run().calls
QUIET = [said for said in Run().texts if said[1] != "Let me look."]
UNMARKED = [False] * 3


def converse(question: str, answer: str, *between: Any, asked: str = "human", said: str = "gpt") -> list[Any]:
    """A question, what came between, and its answer, as turns of ShareGPT."""
    turns = [{"from": whose, "value": value} for whose, value in between]
    return [{"from": asked, "value": question}, *turns, {"from": said, "value": answer}]


def tag(name: str, *values: Any) -> str:
    return "".join(f"\n<{name}>\n{json.dumps(value)}\n</{name}>" for value in values)


def write_python(calls: list[Any]) -> str:
    texts = [f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})" for name, args in calls]
    return f"[{', '.join(texts)}]"


named = [{"name": name, "arguments": args} for name, args in CALLS]
answers = (REPLIES["station"].text, REPLIES["noted"].text, REFUSAL)
keep(
    "sharegpt",
    "llama_factory",
    {
        "conversations": [
            *converse(
                QUESTIONS[0],
                answers[0],
                ("function_call", json.dumps(named[:2])),
                ("observation", json.dumps(RESULTS[:2])),
            ),
            *converse(QUESTIONS[1], answers[1], ("function_call", json.dumps(named[2])), ("observation", RESULTS[2])),
            *converse(QUESTIONS[2], answers[2]),
        ],
        "system": SYSTEM,
        "tools": json.dumps(TOOLS),
    },
    run=Run(errors=UNMARKED, texts=QUIET),
    documents="LLaMA-Factory, data/README.md",
)
offered = "\n".join(json.dumps({"type": "function", "function": tool}) for tool in TOOLS)
returned = [{"name": name, "content": result} for (name, _), result in zip(CALLS, RESULTS, strict=True)]
keep(
    "sharegpt",
    "hermes",
    {
        "id": "h1",
        "conversations": [
            {"from": "system", "value": f"{SYSTEM}\n<tools>\n{offered}\n</tools>"},
            *converse(
                QUESTIONS[0],
                answers[0],
                ("gpt", "<think>\nHm.\n</think>\nLet me look." + tag("tool_call", *named[:2])),
                ("tool", tag("tool_response", *returned[:2])),
            ),
            *converse(
                QUESTIONS[1],
                answers[1],
                ("gpt", tag("tool_call", named[2]).strip()),
                ("tool", tag("tool_response", returned[2])),
            ),
            *converse(QUESTIONS[2], answers[2]),
        ],
    },
    run=Run(errors=UNMARKED),
    documents="NousResearch/hermes-function-calling-v1",
)
keep(
    "sharegpt",
    "glaive",
    {
        "conversations": converse(
            QUESTIONS[0],
            "It rains.",
            ("gpt", """<functioncall> {"name": "get_weather", "arguments": '{"city": "Oslo"}'}"""),
            ("function_response", json.dumps(RESULTS[0])),
        )
    },
    run=Run([], [], [], [["user", QUESTIONS[0]], ["assistant", "It rains."]], "It rains.", None),
    unread=[("call", "/conversations/1/value"), ("call", "/conversations/2/value")],
    documents="glaiveai/glaive-function-calling-v2: the arguments are quoted twice, so that the call is no JSON",
)

chat = [
    ("system", SYSTEM),
    ("user", QUESTIONS[0]),
    ("assistant", write_python(CALLS[:2])),
    ("tool", json.dumps(RESULTS[0])),
    ("tool", RESULTS[1]),
    ("assistant", answers[0]),
    ("user", QUESTIONS[1]),
    ("assistant", write_python(CALLS[2:])),
    ("tool", RESULTS[2]),
    ("assistant", answers[1]),
    ("user", QUESTIONS[2]),
    ("assistant", answers[2]),
]
keep(
    "python_calls",
    "messages",
    {"messages": [{"role": role, "content": content} for role, content in chat], "tools": TOOLS},
    run=Run(errors=UNMARKED, texts=QUIET),
    documents="ShishirPatil/gorilla, prompts of the leaderboard",
)
keep(
    "python_calls",
    "result",
    {
        "id": "parallel_0",
        "question": [[{"role": "user", "content": QUESTIONS[0]}]],
        "functions": TOOLS,
        "result": write_python(CALLS[:2]),
        "latency": 1.2,
    },
    run=first_reply(texts=QUIET[:1]),
    documents="ShishirPatil/gorilla, result files of models that are prompted",
)
keep(
    "python_calls",
    "output",
    {"input": QUESTIONS[0], "output": "get_weather('Oslo')\nget_weather(city='Bergen')", "tools": TOOLS},
    run=first_reply(calls=CALLS[1:2], results=[None], errors=[False], texts=QUIET[:1]),
    unread=[("call", "/output")],
    documents="Future AGI, evaluations of function calling",
)
