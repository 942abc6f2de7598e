"""Chat Completions as users of the client log them: messages, request and reply, chunks, batch lines, functions."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from script import ABOUT, PNG, QUESTIONS, REPLIES, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep
from server import serve

MODEL = "gpt-4.1-mini"
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": ABOUT["get_weather"], "parameters": SCHEMAS["get_weather"]},
    },
    {"type": "custom", "custom": {"name": "write_note", "description": ABOUT["write_note"]}},
]
FUNCTIONS = [{"name": name, "description": ABOUT[name], "parameters": schema} for name, schema in SCHEMAS.items()]
RUN = Run(
    calls=[*Run().calls[:2], ["write_note", "Oslo: rain"]],
    errors=[False, False, False],  # the API has no mark
)
RESULT_OF = {"call_a": json.dumps(RESULTS[0]), "call_b": RESULTS[1], "call_c": RESULTS[2]}


def ask(messages: list[Any], question: str, client: OpenAI) -> None:
    """One question, until the model makes no more calls."""
    image = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]
    parts: Any = [{"type": "text", "text": question}, *image] if question.startswith("Write") else question
    messages.append({"role": "user", "content": parts})
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return
        messages.extend(
            {"role": "tool", "tool_call_id": call.id, "content": RESULT_OF[call.id]} for call in message.tool_calls
        )


with serve() as url:
    client = OpenAI(base_url=f"{url}/v1", api_key="x")
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    for question in QUESTIONS:
        ask(messages, question, client)
    keep(
        "openai",
        "messages",
        {"messages": messages, "tools": TOOLS},
        package="openai",
        run=RUN,
        image="/messages/6/content/1",
    )

    request = {"model": MODEL, "messages": messages[:-1], "tools": TOOLS}
    response = client.chat.completions.create(**request).model_dump()
    keep(
        "exchange",
        "openai",
        {"request": request, "response": response},
        package="openai",
        run=RUN,
        image="/request/messages/6/content/1",
    )

    first = [*messages[:2]]
    request = {"model": MODEL, "messages": first, "tools": TOOLS}
    completion = client.chat.completions.create(**request).model_dump(mode="json")
    texts = [["user", QUESTIONS[0]], ["assistant", REPLIES["raining"].text]]
    alone = first_reply(texts=texts[1:], tools=None)
    keep("openai", "completion", completion, package="openai", run=alone)
    keep("openai", "request_with_choices", request | completion, package="openai", run=first_reply())
    line = {
        "id": "batch_req_1",
        "custom_id": "request-1",
        "response": {"status_code": 200, "request_id": "r1", "body": completion},
        "error": None,
    }
    keep("exchange", "openai_batch_line", line, package="openai", run=alone)
    chunks = [
        chunk.model_dump(mode="json", exclude_none=True)
        for chunk in client.chat.completions.create(**request, stream=True)
    ]
    keep("openai", "stream", {"chunks": chunks}, package="openai", run=alone)

    old: list[Any] = [{"role": "user", "content": QUESTIONS[0]}]
    reply = client.chat.completions.create(model=MODEL, messages=old, functions=FUNCTIONS).choices[0].message
    old += [
        reply.model_dump(exclude_none=True),
        {"role": "function", "name": "get_weather", "content": f"{RESULT_OF['call_a']}"},
    ]
    old.append({"role": "assistant", "content": REPLIES["station"].text})
    keep(
        "openai",
        "functions",
        {"messages": old, "functions": FUNCTIONS},
        package="openai",
        run=Run(
            Run().calls[:1],
            [RESULTS[0]],
            [False],
            [*texts, ["assistant", REPLIES["station"].text]],
            REPLIES["station"].text,
        ),
    )
