"""An ASGI caller: requests to an application in this process, byte for byte as given, with no client in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import FastAPI

from service import problem_types

TYPES = {(one.uri, one.title, one.status) for one in problem_types.TYPES}
JSON = {"content-type": "application/json"}


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


class Ask(Protocol):
    """Sends one request and waits for the answer."""

    def __call__(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        app: FastAPI | None = None,
        headers: Mapping[str, str] = JSON,
        query: bytes = b"",
    ) -> Answer: ...


async def exchange(  # noqa: PLR0913 (each is a part of a request)
    app: Callable[..., Any],
    method: str,
    path: str,
    chunks: Callable[[], Any],
    headers: Mapping[str, str],
    query: bytes,
    *,
    client: str = "127.0.0.1",
) -> Answer:
    """One request whose body comes as `chunks()` gives it: (bytes, more) at a time."""
    sent: list[dict[str, Any]] = []
    more = True

    async def receive() -> dict[str, Any]:
        nonlocal more
        if not more:  # the caller stays
            await asyncio.get_running_loop().create_future()
        body, more = await chunks()
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "server": ("localhost", 80),
        "client": (client, 1),
    }
    await app(scope, receive, send)
    start, *rest = sent
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], found, b"".join(part.get("body", b"") for part in rest))


def build_ask(runner: asyncio.Runner, default: FastAPI | None = None) -> Ask:
    """Asks in the loop of `runner`: the application that a request names, else `default`."""

    def ask(
        method: str,
        path: str,
        body: bytes = b"",
        *,
        app: FastAPI | None = None,
        headers: Mapping[str, str] = JSON,
        query: bytes = b"",
    ) -> Answer:
        async def chunks() -> tuple[bytes, bool]:
            return body, False

        asked = app or default
        assert asked is not None
        return runner.run(exchange(asked, method, path, chunks, headers, query))

    return ask
