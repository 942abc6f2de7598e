"""Gemini's contents: function calls and responses, code that the provider runs, an image, request and reply."""

from __future__ import annotations

import base64
import json
from typing import Any

from google import genai
from google.genai import types
from script import ABOUT, PNG, QUESTIONS, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep
from server import serve

MODEL = "gemini-2.5-flash"
CONFIG = types.GenerateContentConfig(
    system_instruction=SYSTEM,
    tools=[
        types.Tool(
            function_declarations=[
                types.FunctionDeclaration(name=name, description=ABOUT[name], parameters_json_schema=schema)
                for name, schema in SCHEMAS.items()
            ]
        )
    ],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
RETURNED: dict[str, Any] = {"call_a": RESULTS[0], "call_b": {"error": RESULTS[1]}, "call_c": {"output": RESULTS[2]}}

with serve() as url:
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=url))
    contents: list[types.Content] = []
    for question in QUESTIONS:
        image = (
            [types.Part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png")]
            if question.startswith("Write")
            else []
        )
        contents.append(types.Content(role="user", parts=[types.Part(text=question), *image]))
        while True:
            response = client.models.generate_content(model=MODEL, contents=contents, config=CONFIG)
            content = response.candidates[0].content
            contents.append(content)
            calls = [part.function_call for part in content.parts if part.function_call]
            if not calls:
                break
            answers = [types.FunctionResponse(id=call.id, name=call.name, response=RETURNED[call.id]) for call in calls]
            contents.append(
                types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers])
            )
    run = Run(
        calls=[*Run().calls, ["code_execution", {"language": "PYTHON", "code": "print(4)"}]],
        results=[RESULTS[0], RESULTS[1], RESULTS[2], "4\n"],
        errors=[False, True, False, False],
        tools=[*SCHEMAS, "code_execution"],
    )
    wire = [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in contents]
    config = CONFIG.model_dump(mode="json", by_alias=True, exclude_none=True)
    request = {"systemInstruction": {"parts": [{"text": SYSTEM}]}, "tools": config["tools"], "contents": wire}
    keep("gemini", "contents", request, package="google-genai", run=run, image="/contents/4/parts/1/inlineData")
    python = [content.model_dump(mode="json", exclude_none=True) for content in contents]
    keep(
        "gemini",
        "python_dump",
        {"contents": python, "config": CONFIG.model_dump(mode="json", exclude_none=True)},
        package="google-genai",
        run=run,
        image="/contents/4/parts/1/inline_data",
    )
    response = client.models.generate_content(model=MODEL, contents=contents[:1], config=CONFIG)
    reply = json.loads(response.model_dump_json(by_alias=True, exclude_none=True))
    keep(
        "exchange",
        "gemini",
        {"request": {**request, "contents": wire[:1]}, "response": reply},
        package="google-genai",
        run=first_reply(),
    )
    keep(
        "gemini",
        "response",
        reply,
        package="google-genai",
        run=first_reply(texts=Run().texts[1:2], tools=None),
    )
