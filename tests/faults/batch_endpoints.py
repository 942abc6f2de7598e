"""The batch endpoints of two providers, after their documentation, in one server: what is submitted is answered well.

Each model speaks the dialect of its provider, by calls and by batches. A test may hook in before a request takes effect and
after, while its answer has not left: `upload:in`, `upload:done`, `create:in` and so on, by the kind of request.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from service.asking.demo_judge import build_reply
from service.core.judging.prompts import Prompt, Turn

Json = Any

TOKENS_IN, TOKENS_OUT = 1_000, 100

ANTHROPIC_PARAMS = {"model", "max_tokens", "messages", "system", "output_format", "temperature", "thinking"}
"""The members that a request of ours may have: Anthropic refuses others."""

PAGE_ROWS = 3
"""Rows of a list in one answer, where the provider and not the client decides."""


class Provider(NamedTuple):
    """A provider: a model of it, and the path of its address."""

    model: str
    base: str


PROVIDERS = {
    "openai": Provider("openai/gpt-4o-mini", "/v1"),
    "anthropic": Provider("anthropic/claude-haiku-4-5", ""),
}


class DroppedError(Exception):
    """Raised by a hook: the connection ends without an answer."""


@dataclass
class Batch:
    """A batch that was taken. `lines`: custom ids and bodies."""

    id: str
    lines: list[tuple[str, Json]]
    label: str
    file: str
    at: float = field(default_factory=time.time)
    looks: int = 0
    cancelled: bool = False


@dataclass
class Endpoints:
    """What the server was sent."""

    name: str
    """The provider it plays."""
    looks: int = 1
    """How often a batch is looked at before it has ended; below 0: it never ends by itself."""
    fails: Callable[[int], bool] = lambda _: False
    """Whether a line fails, by its number in its batch."""
    breaks: Callable[[int], bool] = lambda _: False
    """Whether the reply of a line breaks the rules, by its number."""
    refuses: str = ""
    """The kind of request that gets a 400."""
    hook: Callable[[str], None] = lambda _: None
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    live: Counter[int] = field(default_factory=Counter)
    """How often each order was asked about in a call."""
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}{PROVIDERS[self.name].base}"

    @property
    def model(self) -> str:
        return PROVIDERS[self.name].model

    def billed(self) -> Counter[int]:
        """How often each order was asked about in batches, counting the lines that did not fail."""
        return Counter(
            order_of(body)
            for batch in self.batches.values()
            for n, (_, body) in enumerate(batch.lines)
            if not self.fails(n)
        )

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: bytes, kind: str) -> Json | bytes:
        """What a request gets; None for a path that is not there."""
        matches = [(name, re.fullmatch(pattern, path)) for verb, pattern, name in _ROUTES if verb == method]
        name, found = next(((name, found) for name, found in matches if found), ("", None))
        if found is None:
            return None
        step = name.partition("_")[0]
        self.step(f"{step}:in")
        if step == self.refuses:
            return {"error": {"message": "no", "type": "invalid_request_error"}}, 400
        with self.lock:
            result = getattr(self, name)(*[one for one in found.groups() if one], query=query, body=body, kind=kind)
        self.step(f"{step}:done")
        return result

    def step(self, step: str) -> None:
        self.steps.append(step)
        self.hook(step)

    def live_call(self, *_: str, body: bytes, **__: Any) -> Json:
        asked = json.loads(body)
        self.live[order_of(asked)] += 1
        return reply_to(asked)

    def upload_file(self, *, body: bytes, kind: str, **_: Any) -> Json:
        parts = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body).get_payload()
        [part] = [one for one in parts if one.get_filename()]  # type: ignore[union-attr]
        name = f"file-{len(self.files)}"
        self.files[name] = (part.get_filename(), part.get_payload(decode=True))  # type: ignore[union-attr,assignment]
        return {
            "id": name,
            "object": "file",
            "filename": self.files[name][0],
            "purpose": "batch",
            "created_at": int(time.time()),
        }

    def list_files(self, *, query: Mapping[str, list[str]], **_: Any) -> Json:
        rows = [
            {"id": name, "filename": file[0], "created_at": 1 + int(time.time())} for name, file in self.files.items()
        ]
        return self._page(rows[::-1], query)

    def create_batch(self, *_: str, body: bytes, **__: Any) -> Json:
        asked, file, label = json.loads(body), "", ""
        if "requests" in asked:
            lines = [(one["custom_id"], one["params"]) for one in asked["requests"]]
            assert all(body.keys() <= ANTHROPIC_PARAMS for _, body in lines)
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name, _ in lines)
        else:
            file, label = asked["input_file_id"], asked["metadata"]["callgrade"]
            rows = [json.loads(line) for line in self.files[file][1].splitlines()]
            assert all(one["url"] == asked["endpoint"] for one in rows)
            lines = [(one["custom_id"], one["body"]) for one in rows]
        assert len({name for name, _ in lines}) == len(lines)
        made = Batch(f"batch_{len(self.batches)}", lines, label, file)
        self.batches[made.id] = made
        return self._show(made)

    def list_batches(self, *, query: Mapping[str, list[str]], **_: Any) -> Json:
        """The batches, the newest first; meanwhile time passes."""
        for one in self.batches.values():
            one.looks += 1
        return self._page([self._show(one) for one in [*self.batches.values()][::-1]], query)

    def _page(self, rows: list[Json], query: Mapping[str, list[str]]) -> Json:
        """Some of the rows, after an id."""
        after = query.get("after") or query.get("after_id")
        start = [one["id"] for one in rows].index(after[0]) + 1 if after else 0
        end = start + PAGE_ROWS
        return {"data": rows[start:end], "has_more": end < len(rows)}

    def look_at(self, name: str, **_: Any) -> Json:
        self.batches[name].looks += 1
        return self._show(self.batches[name])

    def cancel_batch(self, name: str, **_: Any) -> Json:
        """A batch is cancelled; what it has answered can be read."""
        self.batches[name].cancelled = True
        return self._show(self.batches[name])

    def results_of(self, name: str, **_: Any) -> bytes:
        """The result lines, in another order."""
        return b"\n".join(
            json.dumps(one).encode() for one in self._results(self.batches[name.removeprefix("out-")])[::-1]
        )

    def _has_ended(self, batch: Batch) -> bool:
        return batch.cancelled or 0 <= self.looks < batch.looks

    def _results(self, batch: Batch) -> list[Json]:
        found: list[Json] = []
        for n, (name, body) in enumerate(batch.lines):
            failed, broken = self.fails(n) or batch.cancelled, self.breaks(n)
            if self.name == "anthropic":
                error = {"type": "expired"} if n % 2 else {"type": "errored", "error": {"type": "error"}}
                result = error if failed else {"type": "succeeded", "message": reply_to(body, broken=broken)}
                found.append({"custom_id": name, "result": result})
            else:
                answer = (
                    {"status_code": 429, "body": {"error": {}}}
                    if failed
                    else {"status_code": 200, "body": reply_to(body, broken=broken)}
                )
                found.append({"id": f"r{n}", "custom_id": name, "response": answer, "error": None})
        return found

    def _show(self, batch: Batch) -> Json:
        ended, at = self._has_ended(batch), int(batch.at)
        written = datetime.fromtimestamp(batch.at, UTC).isoformat()
        if self.name == "anthropic":
            counts = {"processing": 0 if ended else len(batch.lines), "succeeded": len(batch.lines) if ended else 0}
            return {"id": batch.id, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
                    "created_at": written, "request_counts": counts}  # fmt: skip
        output = f"out-{batch.id}" if ended else None
        return {"id": batch.id, "status": "completed" if ended else "in_progress", "metadata": {"callgrade": batch.label},
                "output_file_id": output, "error_file_id": None, "created_at": at, "input_file_id": batch.file}  # fmt: skip


_ROUTES = (
    ("POST", r"/v1/chat/completions|/v1/messages", "live_call"),
    ("POST", r"/v1/files", "upload_file"),
    ("GET", r"/v1/files", "list_files"),
    ("GET", r"/v1/files/([\w-]+)/content|/v1/messages/batches/(?P<b>\w+)/results", "results_of"),
    ("POST", r"/v1(?:/messages)?/batches", "create_batch"),
    ("GET", r"/v1(?:/messages)?/batches", "list_batches"),
    ("GET", r"/v1(?:/messages)?/batches/(\w+)", "look_at"),
    ("POST", r"/v1(?:/messages)?/batches/(\w+)/cancel", "cancel_batch"),
)


def order_of(body: Json) -> int:
    found = re.search(r"Refund order (\d+)", json.dumps(body))
    return int(found[1]) if found else -1


def reply_to(body: Json, *, broken: bool = False) -> Json:
    """A good answer to a request, in the dialect of the request; or one whose text is no verdict."""
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
    if "system" in body:
        turns = [one["text"] for part in (body["system"], *[m["content"] for m in body["messages"]]) for one in part]
        text = _judge(turns, body["output_format"]["schema"], broken=broken)
        counts = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "service_tier": "batch"}
        return {"id": "msg", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}], "usage": counts}  # fmt: skip
    turns = [str(one["content"]) for one in body["messages"]]
    if body.get("tools"):
        function = body["tools"][0]["function"]
        call = {"name": function["name"], "arguments": _judge(turns, function["parameters"], broken=broken)}
        message = {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}
    else:
        message = {"content": _judge(turns, body["response_format"]["json_schema"]["schema"], broken=broken)}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


def _judge(turns: list[str], schema: Json, *, broken: bool) -> str:
    if broken:
        return "It is fine."
    roles = ("system", *["user"] * (len(turns) - 1))
    asked = tuple(Turn(role, text) for role, text in zip(roles, turns, strict=True))  # type: ignore[arg-type]
    try:
        return json.dumps(build_reply(Prompt("", asked, schema, 1)))
    except (ValueError, LookupError):  # not a judge's question
        return "{}"


@contextmanager
def playing(endpoints: Endpoints) -> Iterator[Endpoints]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            with suppress(DroppedError, ConnectionError):
                found = endpoints.answer(
                    self.command, parts.path, parse_qs(parts.query), body, self.headers.get("content-type", "")
                )
                status = 404 if found is None else 200
                if isinstance(found, tuple):
                    found, status = found
                text = found if isinstance(found, bytes) else json.dumps(found or {}).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                return
            self.close_connection = True

        do_GET = do_POST = _answer  # noqa: N815 (the library's names)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client that was killed is no error; others are."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(*_)

    server = Server(("127.0.0.1", 0), Handler)
    endpoints.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    try:
        yield endpoints
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
