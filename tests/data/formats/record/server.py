"""A server that speaks as OpenAI, Anthropic, Gemini and Bedrock do and replies by the script. `python server.py 8099`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from script import reply_to

POSTED: list[tuple[str, Any]] = []
"""What clients sent, for those whose telemetry is recorded."""


def chat(body: dict[str, Any]) -> dict[str, Any]:
    reply = reply_to(body["messages"][-1])
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if reply.refusal:
        message |= {"content": None, "refusal": reply.text}
    if reply.calls and "functions" in body:
        _, name, args = reply.calls[0]
        message["function_call"] = {"name": name, "arguments": json.dumps(args)}
    elif reply.calls:
        custom = {tool["custom"]["name"] for tool in body.get("tools", ()) if tool["type"] == "custom"}
        message["tool_calls"] = [
            {"id": id_, "type": "custom", "custom": {"name": name, "input": args["text"]}}
            if name in custom
            else {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for id_, name, args in reply.calls
        ]
    reason = "function_call" if "function_call" in message else "tool_calls" if reply.calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return (
        head("chatcmpl-1", "chat.completion", body)
        | {"choices": [choice]}
        | {"usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}
    )


def head(id_: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"id": id_, "object": kind, "created": 1_760_000_000, "model": body["model"]}


def chat_chunks(body: dict[str, Any]) -> Iterator[str]:
    """The reply in chunks: arguments in two halves."""
    done = chat(body)["choices"][0]
    message = done["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{key: message[key]} for key in ("content", "refusal") if message[key]]
    for at, call in enumerate(message.get("tool_calls", ())):
        part = "function" if "function" in call else "custom"
        key = "arguments" if part == "function" else "input"
        text = call[part][key]
        deltas.append({"tool_calls": [{"index": at, **call, part: {**call[part], key: text[:5]}}]})
        deltas.append({"tool_calls": [{"index": at, part: {key: text[5:]}}]})
    for delta in deltas:
        yield event(
            head("chatcmpl-1", "chat.completion.chunk", body)
            | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        )
    yield event(
        head("chatcmpl-1", "chat.completion.chunk", body)
        | {"choices": [{"index": 0, "delta": {}, "finish_reason": done["finish_reason"]}]}
    )
    yield "data: [DONE]\n\n"


def event(data: Any, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


def responses(body: dict[str, Any]) -> dict[str, Any]:
    given = body["input"]
    last = given if isinstance(given, str) else given[-1]
    reply = reply_to(last)
    output: list[dict[str, Any]] = [{"id": "rs_1", "type": "reasoning", "summary": []}]
    part = (
        {"type": "refusal", "refusal": reply.text}
        if reply.refusal
        else {"type": "output_text", "text": reply.text, "annotations": []}
    )
    if "noted" in json.dumps(last) and any(tool["type"] == "mcp" for tool in body.get("tools", ())):
        output += HOSTED
    if reply.text:
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    custom = {tool["name"] for tool in body.get("tools", ()) if tool["type"] == "custom"}
    for id_, name, args in reply.calls:
        call = {"id": f"fc_{id_}", "call_id": id_, "name": name, "status": "completed"}
        text = {"type": "custom_tool_call", "input": args.get("text")}
        output.append(call | (text if name in custom else {"type": "function_call", "arguments": json.dumps(args)}))
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": 9,
            "output_tokens": 9,
            "total_tokens": 18,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


HOSTED: list[dict[str, Any]] = [
    {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "Bergen station"},
    },
    {
        "id": "fs_1",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["Bergen"],
        "results": [{"file_id": "f1", "filename": "a.md", "score": 0.9, "text": "Bergen: none"}],
    },
    {
        "id": "ci_1",
        "type": "code_interpreter_call",
        "status": "completed",
        "code": "print(4)",
        "container_id": "c1",
        "outputs": [{"type": "logs", "logs": "4"}],
    },
    {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "iVBORw0KGgo="},
    {
        "id": "cu_1",
        "type": "computer_call",
        "call_id": "call_cu",
        "status": "completed",
        "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
        "pending_safety_checks": [],
    },
    {
        "id": "ls_1",
        "type": "local_shell_call",
        "call_id": "call_ls",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    {
        "id": "sh_1",
        "type": "shell_call",
        "call_id": "call_sh",
        "status": "completed",
        "action": {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": 100},
    },
    {
        "id": "so_1",
        "type": "shell_call_output",
        "call_id": "call_sh",
        "status": "completed",
        "output": [{"stdout": "a.md", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    {
        "id": "ap_1",
        "type": "apply_patch_call",
        "call_id": "call_ap",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a.md"},
    },
    {
        "id": "ml_1",
        "type": "mcp_list_tools",
        "server_label": "maps",
        "tools": [{"name": "find_place", "description": "", "input_schema": {"type": "object"}, "annotations": None}],
    },
    {
        "id": "mc_1",
        "type": "mcp_call",
        "server_label": "maps",
        "name": "find_place",
        "arguments": '{"name": "Bergen"}',
        "output": '{"lat": 60.4}',
        "error": None,
    },
    {
        "id": "mc_2",
        "type": "mcp_call",
        "server_label": "maps",
        "name": "find_place",
        "arguments": '{"name": "Atlantis"}',
        "output": None,
        "error": "no such place",
    },
]


def anthropic(body: dict[str, Any]) -> dict[str, Any]:
    last = body["messages"][-1]
    reply = reply_to(last)
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]
    if "noted" in json.dumps(last) and body.get("mcp_servers"):
        blocks += SERVED
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [{"type": "tool_use", "id": id_, "name": name, "input": args} for id_, name, args in reply.calls]
    stop = "refusal" if reply.refusal else "tool_use" if reply.calls else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 9},
    }


SERVED: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Bergen station"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "title": "Bergen",
                "url": "https://a.invalid",
                "encrypted_content": "eA==",
                "page_age": None,
            }
        ],
    },
    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "bash_code_execution", "input": {"command": "ls"}},
    {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "srvtoolu_2",
        "content": {
            "type": "bash_code_execution_result",
            "stdout": "a.md",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    },
    {"type": "server_tool_use", "id": "srvtoolu_3", "name": "web_fetch", "input": {"url": "https://b.invalid"}},
    {
        "type": "web_fetch_tool_result",
        "tool_use_id": "srvtoolu_3",
        "content": {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
    },
    {
        "type": "mcp_tool_use",
        "id": "mcptoolu_1",
        "name": "find_place",
        "server_name": "maps",
        "input": {"name": "Bergen"},
    },
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_1",
        "is_error": False,
        "content": [{"type": "text", "text": '{"lat": 60.4}'}],
    },
    {
        "type": "mcp_tool_use",
        "id": "mcptoolu_2",
        "name": "find_place",
        "server_name": "maps",
        "input": {"name": "Atlantis"},
    },
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_2",
        "is_error": True,
        "content": [{"type": "text", "text": "no such place"}],
    },
]


def gemini(body: dict[str, Any]) -> dict[str, Any]:
    last = body["contents"][-1]
    reply = reply_to(last)
    parts: list[dict[str, Any]] = [{"text": "Hm.", "thought": True}] if reply.text else []
    if "noted" in json.dumps(last):
        parts.append({"executableCode": {"language": "PYTHON", "code": "print(4)"}})
        parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4\n"}})
    if reply.text:
        parts.append({"text": reply.text})
    parts += [{"functionCall": {"id": id_, "name": name, "args": args}} for id_, name, args in reply.calls]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "modelVersion": "gemini-2.5-flash",
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18},
    }


def bedrock(body: dict[str, Any]) -> dict[str, Any]:
    reply = reply_to(body["messages"][-1])
    content: list[dict[str, Any]] = [{"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}]
    content += [{"text": reply.text}] if reply.text else []
    content += [{"toolUse": {"toolUseId": id_, "name": name, "input": args}} for id_, name, args in reply.calls]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if reply.calls else "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18},
        "metrics": {"latencyMs": 1},
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data)
        except ValueError:
            POSTED.append((self.path, data))
            return self.send(b"{}")
        if self.path.endswith("/chat/completions") and body.get("stream"):
            return self.send("".join(chat_chunks(body)).encode(), "text/event-stream")
        for ending, answer in ANSWERS.items():
            if self.path.split("?")[0].endswith(ending):
                return self.send(json.dumps(answer({"model": "scripted", **body})).encode())
        POSTED.append((self.path, body))
        return self.send(b"{}")

    do_PATCH = do_POST

    def do_GET(self) -> None:
        self.send(b"{}")

    def send(self, data: bytes, media: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


ANSWERS = {
    "/chat/completions": chat,
    "/responses": responses,
    "/messages": anthropic,
    ":generateContent": gemini,
    "/converse": bedrock,
}


@contextmanager
def serve(port: int = 0) -> Iterator[str]:
    """The server at its address, without a slash at the end."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
