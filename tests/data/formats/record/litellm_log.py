"""What LiteLLM gives a logging callback: the StandardLoggingPayload of the last call of a conversation."""

from __future__ import annotations

import json
import time
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger
from script import ABOUT, PNG, QUESTIONS, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep
from server import serve

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": ABOUT[name], "parameters": schema}}
    for name, schema in SCHEMAS.items()
]
RESULT_OF = {"call_a": json.dumps(RESULTS[0]), "call_b": RESULTS[1], "call_c": RESULTS[2]}
LOGGED: list[Any] = []
DULL = ("metadata", "model_map_information", "hidden_params", "error_information", "cost_breakdown")


class Log(CustomLogger):
    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        whole = json.loads(json.dumps(kwargs["standard_logging_object"], default=str))
        LOGGED.append({key: value for key, value in whole.items() if key not in DULL})


litellm.callbacks = [Log()]
with serve() as url:
    for model, name in (("openai/gpt-4.1-mini", "openai"), ("anthropic/claude-sonnet-4-5", "anthropic")):
        LOGGED.clear()
        messages: list[Any] = [{"role": "system", "content": SYSTEM}]
        made = 0
        for question in QUESTIONS:
            image = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]
            messages.append(
                {
                    "role": "user",
                    "content": [{"type": "text", "text": question}, *image]
                    if question.startswith("Write")
                    else question,
                }
            )
            while True:
                base = f"{url}/v1" if name == "openai" else url
                reply = (
                    litellm.completion(model=model, messages=messages, tools=TOOLS, api_base=base, api_key="x")
                    .choices[0]
                    .message
                )
                made += 1
                messages.append(reply.model_dump(exclude_none=True))
                if not reply.tool_calls:
                    break
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": RESULT_OF[call.id]}
                    for call in reply.tool_calls
                ]
        while len(LOGGED) < made:
            time.sleep(0.05)
        run = Run(errors=[False] * 3)
        done = [log for log in LOGGED if "Break" in json.dumps(log["messages"])][-1]
        called = [log for log in LOGGED if len(log["messages"]) == 2][0]
        keep("litellm", f"{name}_answer", done, package="litellm", run=run, image="/messages/6/content/1")
        keep("litellm", f"{name}_calls", called, package="litellm", run=first_reply())
