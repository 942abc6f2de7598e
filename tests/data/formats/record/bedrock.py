"""Bedrock's Converse: text, JSON and image parts in results, a status of error, reasoning, an image in a question."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config
from script import ABOUT, PNG, QUESTIONS, RESULTS, SCHEMAS, SYSTEM, Run, first_reply, keep
from server import serve

IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}
CONFIG: Any = {
    "tools": [
        {"toolSpec": {"name": name, "description": ABOUT[name], "inputSchema": {"json": schema}}}
        for name, schema in SCHEMAS.items()
    ]
}
RESULT_OF: dict[str, Any] = {
    "call_a": {"content": [{"json": RESULTS[0]}], "status": "success"},
    "call_b": {"content": [{"text": RESULTS[1]}], "status": "error"},
    "call_c": {"content": [{"text": RESULTS[2]}, IMAGE]},
}

with serve() as url:
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 1}),
    )
    asked: dict[str, Any] = {"modelId": "anthropic.claude-sonnet-4", "system": [{"text": SYSTEM}], "toolConfig": CONFIG}
    messages: list[Any] = []
    for question in QUESTIONS:
        messages.append(
            {"role": "user", "content": [{"text": question}, *([IMAGE] if question.startswith("Write") else [])]}
        )
        while True:
            response = client.converse(messages=messages, **asked)
            message = response["output"]["message"]
            messages.append(message)
            calls = [part["toolUse"] for part in message["content"] if "toolUse" in part]
            if not calls:
                break
            results = [
                {"toolResult": {"toolUseId": call["toolUseId"], **RESULT_OF[call["toolUseId"]]}} for call in calls
            ]
            messages.append({"role": "user", "content": results})
    run = Run(results=[RESULTS[0], RESULTS[1], [{"text": RESULTS[2]}, IMAGE]])
    keep(
        "bedrock",
        "messages",
        {**asked, "messages": messages},
        package="boto3",
        run=run,
        image="/messages/4/content/1/image",
    )
    reply = {
        key: value
        for key, value in client.converse(messages=messages[:1], **asked).items()
        if key != "ResponseMetadata"
    }
    request = {**asked, "messages": messages[:1]}
    keep(
        "exchange",
        "bedrock",
        {"request": request, "response": reply},
        package="boto3",
        run=first_reply(),
    )
    log = {
        "schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "timestamp": "2026-01-01T00:00:00Z", "region": "us-east-1",
        "requestId": "r", "operation": "Converse", "modelId": request.pop("modelId"),
        "input": {"inputContentType": "application/json", "inputBodyJson": request, "inputTokenCount": 9},
        "output": {"outputContentType": "application/json", "outputBodyJson": reply, "outputTokenCount": 9},
    }  # fmt: skip
    keep(
        "exchange",
        "bedrock_log",
        log,
        package="boto3",
        run=first_reply(),
        documents="model invocation logging: all but the bodies",
    )
