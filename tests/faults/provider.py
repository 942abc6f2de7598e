"""A provider of our own that speaks OpenAI's chat completions and goes wrong on request.

What it does is chosen by the name of the model, as the server sees it (litellm takes `openai/` off): `fault-<kind>` for one
of `FAULTS`, `says-<label>` to answer with that label, any other name to answer well. `-p<n>` after a fault makes it happen
with a chance of n in 100 (seeded), `-x<n>` for the first n requests only, `-a<n>` after the first n, `-s<n>` for n seconds
from the first fault on. A path before /v1 does the same, in any dialect, for models whose name must stay, say because it has
a price: see `Provider.base`. Where the provider `obeys`, a fault named in the prompt happens.

Run it: python -m tests.faults.provider 8900, or with a latency in seconds after the port.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from service.asking.demo_judge import build_reply
from service.core.judging.prompts import Prompt, Turn

TOKEN = re.compile(r"token\b[^\n]{0,40}?[\"'`]([A-Za-z0-9]{8})[\"'`]")
"""Where a prompt says which token to echo: the word, and soon after it eight characters in quotes."""

TOKENS_IN, TOKENS_OUT = 100, 20
"""What every answer that is paid for says it took."""

FLOOD = 200 * 2**20
"""Bytes of a body that is too long."""

OK, BAD = "200 OK", "500 Internal Server Error"

Json = Any

WORDS = 'Traceback (most recent call last):\n  File "/srv/secret/app.py", line 1, in f\nThe canary sang. ' * 3
"""What a provider says, and nobody repeats."""


class Request(NamedTuple):
    """One request as it arrived. `at` is by the clock the provider was given."""

    model: str
    at: float
    headers: Mapping[str, str]
    body: Json


class Paid(NamedTuple):
    """One answer that a real provider would have billed."""

    model: str
    at: float
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: a status, a body and more headers; or what happens to the connection instead."""

    status: str = OK
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "application/json"
    then: str = "keep"
    """keep | hang (nothing is sent) | drip (a byte at a time, without end) | drip-head (likewise, and the head has no end)
    | flood (FLOOD bytes) | reset | cut (half of the body)"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with what can be read from it."""

    body: Json
    provider: Provider = field(repr=False)

    @property
    def schema(self) -> Json:
        """The JSON Schema of the reply, wherever it was put; {} where it was put in words."""
        wrapped = (self.body.get("response_format") or {}).get("json_schema") or {}
        tools = self.body.get("tools") or [{}]
        return wrapped.get("schema") or tools[0].get("function", {}).get("parameters") or {}

    @property
    def text(self) -> str:
        return "\n".join(str(message.get("content")) for message in self.messages)

    @property
    def messages(self) -> list[Json]:
        """The messages, where the dialect calls them so."""
        return self.body.get("messages", [])

    def verdict(self, **changes: Json) -> str:
        """A reply that satisfies the schema, as JSON; `changes` replaces members."""
        return json.dumps(self._fitting() | changes)

    def _fitting(self) -> Json:
        """The stand-in's reply to a judge's question; to any other, a value of the schema's shape."""
        turns = tuple(Turn(message["role"], str(message["content"])) for message in self.messages)
        try:
            return build_reply(Prompt("", turns, self.schema, 1))
        except (ValueError, LookupError):
            found = TOKEN.search(self.text)
            return example(self.schema, found[1] if found else "00000000")


Behaviour = Reply | Callable[[Asked], Reply]


def example(schema: Json, token: str) -> Json:
    """A value that satisfies the schema, as far as judges' schemas go: the first choice, the echoed token, empty lists."""
    properties = schema.get("properties") or {"label": {"enum": ["yes"]}, "reason": {}, "quotes": {"type": "array"}}
    return {name: _member(name, part, token) for name, part in properties.items()}


def _member(name: str, schema: Json, token: str) -> Json:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if name == "token":
        return token
    plain = {"array": [], "integer": schema.get("minimum", 0), "number": schema.get("minimum", 0), "boolean": True}
    kind = schema.get("type")
    return example(schema, token) if kind == "object" else plain.get(kind, "because it is so")


def said(asked: Asked, content: str | None, **more: Json) -> Reply:
    """A completion with this content; as the arguments of a tool call where a tool was forced on the model."""
    if asked.body.get("tools") and content is not None:
        return told(asked, None, "tool_calls", {"tool_calls": [_call(content)]})
    return told(asked, content, message=more)


def told(asked: Asked, content: str | None, finish: str = "stop", message: Json = None, **choice: Json) -> Reply:
    """A completion of one choice, with more members of its message and of the choice itself."""
    whole = {"role": "assistant", "content": content, **(message or {})}
    return completion(asked, [{"index": 0, "message": whole, "finish_reason": finish, **choice}])


def _call(arguments: str, number: int = 1) -> Json:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "submit", "arguments": arguments}}


def completion(asked: Asked, choices: Json, **changes: Json) -> Reply:
    """A reply of these choices, with its usage."""
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": asked.body["model"]}
    return _json(body | {"usage": _usage(TOKENS_IN, TOKENS_OUT), "choices": choices} | changes)


def _usage(tokens_in: Json, tokens_out: Json, **details: Json) -> Json:
    found = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": TOKENS_IN + TOKENS_OUT}
    return found | ({"prompt_tokens_details": details} if details else {})


def _whole(asked: Asked, **changes: Json) -> Reply:
    """A good verdict in a completion that differs otherwise."""
    message = {"role": "assistant", "content": asked.verdict()}
    return completion(asked, [{"index": 0, "message": message, "finish_reason": "stop"}], **changes)


def good(asked: Asked) -> Reply:
    """What a provider in good health replies."""
    scripted = re.fullmatch(r"says-(.+)", asked.body["model"])
    changes = asked.provider.reply_of(asked) if asked.provider.reply_of else {"label": scripted[1]} if scripted else {}
    return said(asked, asked.verdict(**changes))


def failure(status: str, message: str, code: str | None = None, **headers: str) -> Reply:
    """An error as OpenAI words it."""
    body = {"error": {"message": message, "type": code or "server_error", "param": None, "code": code}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return _json(body, status=status, headers=named)


def _json(body: Json, **more: Any) -> Reply:
    return Reply(body=json.dumps(body).encode(), **more)


def rate_limit(**headers: str) -> Reply:
    return failure("429 Too Many Requests", "Rate limit reached", "rate_limit_exceeded", **headers)


def _echoed_key(asked: Asked) -> Reply:
    key = asked.provider.requests[-1].headers.get("authorization", "").removeprefix("Bearer ")
    return failure("401 Unauthorized", f"Incorrect API key provided: {key}", "invalid_api_key")


def _injected(asked: Asked) -> Reply:
    """The verdict that someone planted in what the judge was shown, repeated word for word."""
    shown = "\n".join([str(message.get("content")) for message in asked.messages if message["role"] == "user"])
    planted = re.search(r'\{[^{}]*label\\*": \\*"[^{}]*\}', shown)
    return said(asked, planted[0] if planted else asked.verdict())


def _two_choices(asked: Asked) -> Reply:
    messages = [{"role": "assistant", "content": asked.verdict(label=label)} for label in ("yes", "no")]
    return completion(asked, [{"index": n, "message": one, "finish_reason": "stop"} for n, one in enumerate(messages)])


def _logprobs(tokens: int = 1, alternatives: int = 2) -> Json:
    likeliest = [{"token": "yes", "logprob": -0.1, "bytes": None}, {"token": "no", "logprob": -2.4, "bytes": None}]
    likeliest += [{"token": "word", "logprob": -5.0, "bytes": [119, 111, 114, 100]}] * (alternatives - 2)
    return {"content": [{"token": "yes", "logprob": -0.1, "bytes": None, "top_logprobs": likeliest}] * tokens}


def _two_dialects(asked: Asked) -> Reply:
    """A good reply as Anthropic and Gemini word it, both in one."""
    text = '{"label": "yes"}'
    anthropic = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}]}
    anthropic |= {"stop_reason": "end_turn", "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}}
    gemini = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}
    gemini |= {"usageMetadata": {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT}}
    return _json({"id": "c1", "model": asked.body["model"] or "m"} | anthropic | gemini)


def _redirect(status: str) -> Behaviour:
    return lambda asked: Reply(status=status, headers=(("Location", asked.provider.elsewhere),))


FAULTS: Mapping[str, Behaviour] = {
    "429-bare": rate_limit(),
    "quota": failure("429 Too Many Requests", "You exceeded your quota", "insufficient_quota"),
    "400": failure("400 Bad Request", "Unknown parameter", "invalid_request_error"),
    "401": _echoed_key,
    "403": failure("403 Forbidden", "Not for this project", "forbidden"),
    "404": failure("404 Not Found", "No such model", "model_not_found"),
    "500": failure(BAD, "The server had an error"),
    "503": failure("503 Service Unavailable", "Overloaded"),
    "hang": Reply(then="hang"),
    "drip": lambda asked: Reply(body=good(asked).body, then="drip"),
    "reset": Reply(then="reset"),
    "truncated-body": lambda asked: Reply(body=good(asked).body, then="cut"),
    "bad-json": Reply(body=b'{"id": "c1", "choices": [{]}'),
    "html": Reply(body=b"<html><body>Bad gateway</body></html>", kind="text/html"),
    "error-in-200": Reply(body=failure(BAD, "upstream failed").body),
    "empty-choices": lambda asked: completion(asked, []),
    "null-content": lambda asked: said(asked, None),
    "refusal": lambda asked: said(asked, None, refusal="I cannot help with that."),
    "length": lambda asked: told(asked, asked.verdict()[: len(asked.verdict()) // 2], "length"),
    "filter": lambda asked: told(asked, "", "content_filter"),
    "whole-length": lambda asked: told(asked, asked.verdict(), "length"),
    "whole-filter": lambda asked: told(asked, asked.verdict(), "content_filter"),
    "model-length": lambda asked: told(asked, asked.verdict(), "model_length"),
    "finish-error": lambda asked: told(asked, asked.verdict(), "error"),
    "finish-abort": lambda asked: told(asked, asked.verdict(), "abort"),
    "off-menu": lambda asked: said(asked, asked.verdict(label="splendid")),
    "not-json": lambda asked: said(asked, "The label is yes."),
    "two-calls": lambda asked: told(
        asked, None, "tool_calls", {"tool_calls": [_call(asked.verdict(), n) for n in (1, 2)]}
    ),
    "two-choices": _two_choices,
    "text-and-call": lambda asked: told(
        asked, asked.verdict(label="no"), "tool_calls", {"tool_calls": [_call(asked.verdict())]}
    ),
    "echo-injected": _injected,
    "thinks": lambda asked: said(asked, f'<think>Is it {{"label": "no"}}?</think>\n\n{asked.verdict()}'),
    "thinks-unopened": lambda asked: said(asked, f"Hm, let me see.\n</think>\n{asked.verdict()}"),
    "thinks-beside": lambda asked: said(asked, asked.verdict(), reasoning_content="Hm, let me see."),
    "thinks-only": lambda asked: said(asked, "", reasoning_content=asked.verdict()),
    "wrong-token": lambda asked: said(asked, asked.verdict(token="zzzzzzzz")),
    "no-usage": lambda asked: Reply(body=re.sub(rb'"usage": \{[^}]*\}, ', b"", good(asked).body)),
    "logprobs": lambda asked: told(asked, asked.verdict(), logprobs=_logprobs()),
    "all-logprobs": lambda asked: told(asked, asked.verdict(), logprobs=_logprobs(asked.body["max_tokens"], 20)),
    "none": _two_dialects,
    "drip-head": Reply(then="drip-head"),
    "flood": Reply(then="flood"),
    "deep": Reply(body=b"[" * 19_000 + b"]" * 19_000),
    "crowd": lambda asked: completion(asked, [{}] * 200_000),
    "crowd-in-500": lambda asked: replace(completion(asked, [], crowd=[[]] * 200_000), status=BAD),
    "gzip": lambda asked: Reply(body=gzip.compress(good(asked).body), headers=(("Content-Encoding", "gzip"),)),
    **{status[:3]: _redirect(status) for status in ("301 Moved", "302 Found", "303 Other", "307 Moved", "308 Moved")},
    "words": failure("400 Bad Request", WORDS),
    "words-in-500": failure(BAD, WORDS),
    "words-in-200": Reply(body=failure(BAD, WORDS).body),
    "words-alone": Reply(body=WORDS.encode(), kind="text/plain"),
    "odd-shape": lambda asked: completion(
        asked, [{"index": WORDS, "message": {"role": WORDS, "content": 7}, WORDS: 1}]
    ),
    "odd-usage": lambda asked: _whole(asked, usage=_usage(WORDS, {})),
    "long-model": lambda asked: _whole(asked, model="\x1b[31m" + "m" * 100_000 + WORDS),
    "cached-usage": lambda asked: _whole(asked, usage=_usage(TOKENS_IN, TOKENS_OUT, cached_tokens=80)),
    "overcached-usage": lambda asked: _whole(asked, usage=_usage(TOKENS_IN, TOKENS_OUT, cached_tokens=TOKENS_IN + 1)),
    "negative-usage": lambda asked: _whole(asked, usage=_usage(-(10**6), -5)),
    "absurd-usage": lambda asked: _whole(asked, usage=_usage(10**30, 20)),
}

_FAULT = re.compile(
    r"fault-(?P<kind>.+?)(?:-p(?P<chance>\d+))?(?:-x(?P<first>\d+))?(?:-a(?P<after>\d+))?(?:-s(?P<seconds>\d+))?"
)


@dataclass(slots=True)
class Provider:
    """The server's state: what came, what was paid for. `now` may be a test's own clock; `ledger` takes a line per bill."""

    now: Callable[[], float] = time.monotonic
    seed: int = 1
    latency: float = 0.0
    elsewhere: str = "http://127.0.0.1:1/"
    """Where a redirect leads."""
    reply_of: Callable[[Asked], Mapping[str, Json]] | None = None
    """The members of the reply that answers a question, where a test has recorded it."""
    obeys: bool = False
    """Whether a fault that is named in what a judge is shown happens."""
    refuses: frozenset[str] = frozenset()
    """Parameters with which a request gets a 400 that says `refusal`."""
    refusal: str = ""
    refusal_status: str = "400 Bad Request"
    requests: list[Request] = field(default_factory=list)
    paid: list[Paid] = field(default_factory=list)
    port: int = 0
    _chance: dict[str, random.Random] = field(default_factory=dict)

    def base(self, script: str | None = None) -> str:
        """The api_base. With a script (`fault-500`, `says-no`) every model behaves as if that were its name."""
        return f"http://127.0.0.1:{self.port}" + (f"/{script}" if script else "") + "/v1"

    @property
    def counts(self) -> Counter[str]:
        return Counter(request.model for request in self.requests)

    def times(self, model: str) -> list[float]:
        return [request.at for request in self.requests if request.model == model]

    def reply(self, script: str | None, headers: Mapping[str, str], body: Json) -> Reply:
        """What one request gets."""
        body.setdefault("model", "")  # some dialects have it in the path
        self.requests.append(Request(body["model"], self.now(), headers, body))
        if self.refuses & body.keys():
            return failure(self.refusal_status, self.refusal, "invalid_request_error")
        asked = Asked(body, self)
        named = re.search(r"fault-[a-z0-9-]+", asked.text) if self.obeys else None
        behaviour = self._behaviour(named[0] if named else script or body["model"])
        reply = behaviour if isinstance(behaviour, Reply) else behaviour(asked)
        if reply.status == OK and reply.then == "keep" and b'"usage"' in reply.body:
            self.paid.append(Paid(body["model"], self.now(), TOKENS_IN, TOKENS_OUT))
        return reply

    def _behaviour(self, name: str) -> Behaviour:
        if name.startswith("says-"):
            return lambda asked: good(Asked(asked.body | {"model": name}, self))
        found = _FAULT.fullmatch(name)
        if not found or not self._strikes(name, found["chance"], found["first"]):
            return good
        times, after = self.times(name), int(found["after"] or 0)
        if 0 < len(times) <= after or (found["seconds"] and self.now() - times[after] >= int(found["seconds"])):
            return good
        if found["kind"].startswith("429-after-"):
            return rate_limit(retry_after=found["kind"].removeprefix("429-after-").replace("_", " "))
        return FAULTS[found["kind"]]

    def _strikes(self, name: str, chance: str | None, first: str | None) -> bool:
        if first and self.counts[name] > int(first):
            return False
        dice = self._chance.setdefault(name, random.Random(f"{self.seed} {name}"))  # noqa: S311 (repeatable)
        return not chance or dice.random() < int(chance) / 100


async def _serve(provider: Provider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):  # the last: at the very end
        while True:
            path, headers, body = await _received(reader)
            reply = provider.reply(_script(path), headers, body)
            await asyncio.sleep(provider.latency)
            if reply.then == "hang":
                await reader.read()  # until the client has gone
            if not await _send(reply, writer):
                break
    writer.close()


async def _body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> Json:
    length = int(headers.get("content-length", "0"))  # some ask first what a model can do, with a GET
    return json.loads(await reader.readexactly(length)) if length else {"messages": []}


async def _received(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], Json]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return first.split()[1], headers, await _body(headers, reader)


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> bool:
    """Send a reply; return whether the connection is kept."""
    if reply.then == "keep":
        writer.write(_head(reply, len(reply.body)) + reply.body)
    elif reply.then == "cut":
        writer.write(_head(reply, len(reply.body)) + reply.body[: len(reply.body) // 2])
    elif reply.then == "reset":
        writer.transport.abort()
    elif reply.then != "hang":
        start, piece, pause = {
            "flood": (_head(reply, FLOOD), b" " * 2**16, 0.0),
            "drip": (
                _head(reply, 10**6),
                b" ",
                0.02,
            ),  # spaces before a JSON text, as many as the client has patience for
            "drip-head": (b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.02),
        }[reply.then]
        writer.write(start)
        for _ in range(FLOOD // len(piece)):
            if writer.is_closing():
                break
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
    await writer.drain()
    return reply.then == "keep"


def _script(path: str) -> str | None:
    first = path.split("/")[1]
    return first if first.startswith(("fault-", "says-")) else None


def _head(reply: Reply, length: int) -> bytes:
    named = [("Content-Type", reply.kind), ("Content-Length", str(length)), *reply.headers]
    return "\r\n".join([f"HTTP/1.1 {reply.status}", *(f"{n}: {v}" for n, v in named), "", ""]).encode()


async def _run(provider: Provider, ready: threading.Event, stopping: asyncio.Event, port: int) -> None:
    connections: set[asyncio.Task[None] | None] = set()  # the loop alone would let go of those that hang

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        connections.add(task)
        await _serve(provider, reader, writer)
        connections.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", port)
    provider.port = server.sockets[0].getsockname()[1]
    ready.set()
    await stopping.wait()
    server.close()


@contextmanager
def serving(provider: Provider, port: int = 0) -> Iterator[Provider]:
    """The provider at a free port of the loopback, on a loop and a thread of its own."""
    ready, stopping, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    thread = threading.Thread(target=_until_stopped, args=[loop, _run(provider, ready, stopping, port)], daemon=True)
    thread.start()
    ready.wait()
    try:
        yield provider
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()


def _until_stopped(loop: asyncio.AbstractEventLoop, main: Any) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:  # cancels what still hangs
        runner.run(main)


if __name__ == "__main__":
    with serving(Provider(latency=float(sys.argv[2]) if sys.argv[2:] else 0.0), int(sys.argv[1])):
        threading.Event().wait()
