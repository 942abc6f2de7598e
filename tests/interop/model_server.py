"""A model that says its lines: an HTTP server with the APIs of OpenAI, Anthropic, Gemini and Ollama.

It keeps no state: how often a request has the model speak says which turn it is, unless its `seed` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.interop.conversation import ANSWER, CALLS, MODEL

Body = dict[str, Any]
NAME = "get_order"
CREATED = 1_780_000_000
USAGE = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}


def count_turns(value: Any) -> int:
    """Count what the model has said anywhere in a request, whatever its API."""
    if isinstance(value, list):
        return sum(map(count_turns, value))
    if not isinstance(value, dict):
        return 0
    if value.get("role") in {"assistant", "model"} or value.get("type") == "function_call":
        return 1
    return sum(map(count_turns, value.values()))


def answer_chat(body: Body) -> Body:
    """Answer as the Chat Completions API."""
    turn = body.get("seed", count_turns(body["messages"]))
    message: Body = {"role": "assistant", "content": ANSWER if turn >= len(CALLS) else None}
    offered = {tool["function"]["name"] for tool in body.get("tools", [])}
    if turn < len(CALLS):
        message["tool_calls"] = [_call(turn, NAME, CALLS[turn])]
    elif "final_answer" in offered:
        message |= {"content": None, "tool_calls": [_call(turn, "final_answer", {"answer": ANSWER})]}
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": f"chatcmpl-{turn + 1}", "object": "chat.completion", "created": CREATED, "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": USAGE,
    }  # fmt: skip


def _call(turn: int, name: str, arguments: Body) -> Body:
    return {
        "id": f"call_{turn + 1}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def answer_responses(body: Body) -> Body:
    """Answer as the Responses API."""
    turn = count_turns(body["input"])
    item: Body = {"type": "function_call", "id": f"fc_{turn + 1}", "call_id": f"call_{turn + 1}", "name": NAME}
    if turn < len(CALLS):
        item |= {"arguments": json.dumps(CALLS[turn]), "status": "completed"}
    else:
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    usage = {
        "input_tokens": 90, "output_tokens": 9, "total_tokens": 99, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    return {
        "id": f"resp_{turn + 1}", "object": "response", "created_at": CREATED, "model": MODEL, "status": "completed",
        "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools", []), "usage": usage,
    }  # fmt: skip


def answer_anthropic(body: Body) -> Body:
    """Answer as the Messages API."""
    turn = count_turns(body["messages"])
    block: Body = {"type": "text", "text": ANSWER}
    if turn < len(CALLS):
        block = {"type": "tool_use", "id": f"toolu_{turn + 1}", "name": NAME, "input": CALLS[turn]}
    reason = "tool_use" if turn < len(CALLS) else "end_turn"
    return {
        "id": f"msg_{turn + 1}", "type": "message", "role": "assistant", "model": body["model"], "content": [block],
        "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 90, "output_tokens": 9},
    }  # fmt: skip


def answer_gemini(body: Body) -> Body:
    """Answer as Gemini's generateContent."""
    turn = count_turns(body["contents"])
    part: Body = {"functionCall": {"name": NAME, "args": CALLS[turn]}} if turn < len(CALLS) else {"text": ANSWER}
    usage = {"promptTokenCount": 90, "candidatesTokenCount": 9, "totalTokenCount": 99}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}


def answer_ollama(body: Body) -> Body:
    """Answer as Ollama's /api/chat."""
    turn = count_turns(body["messages"])
    message: Body = {"role": "assistant", "content": "" if turn < len(CALLS) else ANSWER}
    if turn < len(CALLS):
        message["tool_calls"] = [{"function": {"name": NAME, "arguments": CALLS[turn]}}]
    return {
        "model": body["model"], "created_at": "2026-05-28T20:26:40Z", "message": message, "done": True,
        "done_reason": "stop", "prompt_eval_count": 90, "eval_count": 9,
    }  # fmt: skip


ROUTES: dict[str, Callable[[Body], Body]] = {
    "/chat/completions": answer_chat,
    "/responses": answer_responses,
    "/messages": answer_anthropic,
    ":generateContent": answer_gemini,
    "/api/chat": answer_ollama,
}


def list_chunks(completion: Body) -> Iterator[Body]:
    """Yield a chat completion as a stream has it: the message, then the reason to stop, then the usage."""
    [choice] = completion["choices"]
    calls = [{"index": n, **call} for n, call in enumerate(choice["message"].get("tool_calls", []))]
    delta = choice["message"] | ({"tool_calls": calls} if calls else {})
    head = completion | {"object": "chat.completion.chunk", "usage": None}
    yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield head | {"choices": [], "usage": completion["usage"]}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        answer = next((answer for end, answer in ROUTES.items() if path.endswith(end)), None)
        if answer is None:
            self.send_error(404)
        elif body.get("stream") and answer is answer_chat:
            events = [*map(json.dumps, list_chunks(answer(body))), "[DONE]"]
            self._send("text/event-stream", "".join(f"data: {event}\n\n" for event in events))
        else:
            self._send("application/json", json.dumps(answer(body)))

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def date_time_string(self, *_: Any) -> str:
        return "Thu, 28 May 2026 20:26:40 GMT"

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serve() -> Iterator[str]:
    """Run the server on a free port of this machine; yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
