"""An ASGI caller: requests to an application in this process, byte for byte as given, with no client in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode

from fastapi import FastAPI

from service import problem_types

TYPES = {(one.uri, one.title, one.status) for one in problem_types.TYPES}
JSON = {"content-type": "application/json"}
LINES = {"content-type": "application/x-ndjson"}

Parts: TypeAlias = Callable[[], Awaitable[tuple[bytes, bool]]]
"""A body as it comes: called, some bytes and whether there are more."""


def jsonl(*rows: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


def bearer(key: str) -> dict[str, str]:
    return JSON | {"authorization": f"Bearer {key}"}


def list_pointers(problem: Mapping[str, Any]) -> list[str]:
    """The places that a problem names."""
    return [place["pointer"] for place in problem["errors"]]


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> dict[str, Any]:
        """The problem document, checked for the shape that every error has."""
        assert self.headers["content-type"] == "application/problem+json"
        found = self.json
        assert set(found) == {"type", "title", "status", "detail", "errors"}
        assert found["status"] == self.status >= 400
        assert (found["type"], found["title"], self.status) in TYPES
        assert found["detail"]
        assert all(set(place) == {"pointer", "detail"} for place in found["errors"])
        return found


async def exchange(  # noqa: PLR0913 (each is a part of a request)
    app: Callable[..., Any],
    method: str,
    path: str,
    body: object = b"",
    headers: Mapping[str, str] = JSON,
    query: bytes = b"",
    *,
    client: str = "127.0.0.1",
) -> Answer:
    """One request. The body: bytes, `Parts` as they come, or a value that is sent as JSON."""
    sent: list[dict[str, Any]] = []
    more = True

    async def receive() -> dict[str, Any]:
        nonlocal more
        if not more:  # the caller stays
            await asyncio.get_running_loop().create_future()
        part, more = await body() if callable(body) else (_encode(body), False)
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(build_scope(method, path, headers, query, client=client), receive, send)
    start, *rest = sent
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], found, b"".join(part.get("body", b"") for part in rest))


def _encode(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def build_scope(
    method: str, path: str, headers: Mapping[str, str] | None = None, query: bytes = b"", *, client: str = "127.0.0.1"
) -> dict[str, Any]:
    """What a server tells an application of a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in (headers or {}).items()],
        "server": ("localhost", 80),
        "client": (client, 1),
    }


@dataclass(frozen=True)
class Ask:
    """Sends one request by way of `run`, to the application that it names, else to `default`, and waits for the answer."""

    run: Callable[[Coroutine[Any, Any, Answer]], Answer]
    default: FastAPI | None = None

    def __call__(
        self,
        method: str,
        path: str,
        body: object = b"",
        *,
        app: FastAPI | None = None,
        headers: Mapping[str, str] = JSON,
        query: bytes = b"",
    ) -> Answer:
        asked = app or self.default
        assert asked is not None
        return self.run(exchange(asked, method, path, body, headers, query))


class Client:
    """Asks one application, as one caller."""

    def __init__(self, ask: Ask, app: FastAPI, key: str | None = None) -> None:
        self.ask = ask
        self.app = app
        self.key = key

    def __call__(
        self, verb: str, path: str, body: object = b"", headers: Mapping[str, str] = JSON, /, **query: object
    ) -> Answer:
        known = {} if self.key is None else bearer(self.key)
        return self.ask(verb, path, body, app=self.app, headers=known | headers, query=urlencode(query).encode())
