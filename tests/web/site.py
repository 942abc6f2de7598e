"""The pages in this process: a store with runs in it, and somebody who opens pages and sends forms."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI

from service.jobs.items import ItemScorer, WaitingItem
from service.reading.strict_json import Limits
from service.settings import Settings
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import ChunkItem, OutcomeRows
from service.store.jobs.submission import Chunk, JobSubmission
from service.wiring import build_engine
from tests.api.asgi_caller import Answer, exchange
from tests.store.played import PLAYER, ended, hold, opened, rows_of

HOST = {"host": "localhost"}
TOKEN = "local-token"
NOBODY = 13
"""The number of a request that asks for a judge where there is none, so that it cannot be scored."""


@dataclass
class Visitor:
    """A browser without a script: it keeps cookies, and fills in forms."""

    app: FastAPI
    runner: asyncio.Runner
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """What one request is answered."""
        path, _, query = path.partition("?")

        kept = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
        given = HOST | kept | {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.runner.run(exchange(self.app, method, path, body, given, query.encode()))
        if made := answer.headers.get("set-cookie"):
            name, _, value = made.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
        return answer

    def open(self, path: str) -> Answer:
        """A page."""
        return self.ask("GET", path)

    def send(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """A form, as it is."""
        told = {"content_type": "application/x-www-form-urlencoded", "origin": "http://localhost"} | headers
        return self.ask("POST", path, urlencode(fields).encode(), **told)

    def fill_in(self, page: str, action: str, **fields: str) -> Answer:
        """The form of a page that leads to `action`, with what stands in its hidden fields."""
        return self.send(action, read_forms(self.open(page).body.decode())[action] | fields)

    def enter(self, token: str = TOKEN) -> Answer:
        """Signs in with the local token."""
        return self.open(f"/sign-in?token={token}")


class _Forms(HTMLParser):
    """The hidden fields of each form, by where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, dict[str, str]] = {}
        self._at: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._at = self.found.setdefault(named.get("action", ""), {})
        elif tag == "input" and named.get("type") == "hidden":
            self._at[named["name"]] = named["value"]


def read_forms(text: str) -> dict[str, dict[str, str]]:
    """The hidden fields of each form of a page, by where it leads."""
    reader = _Forms()
    reader.feed(text)
    return reader.found


def list_links(text: str) -> list[str]:
    """Where a page leads, within the service."""
    return [one.replace("&amp;", "&") for one in re.findall(r'<a [^>]*?href="(/[^"]*)"', text)]


def strip_tags(text: str) -> str:
    """What a page says, on one line."""
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", " ", text))


def fill(
    database: Database,
    requests: Sequence[dict[str, Any]],
    *,
    tenant: str = "",
    over: bool = True,
    name: str = "run",
    waiting: int | None = None,
) -> str:
    """A batch of requests that were scored by code, as a worker would; its id. One that is not `over` goes on.

    `waiting`: the position of one that is not scored yet.
    """
    batches = Batches(database)
    lines = [
        json.dumps({"custom_id": one.pop("custom_id", f"item-{n}"), "request": one}) for n, one in enumerate(requests)
    ]
    whole = [*lines, *([] if over else ['{"custom_id": "later", "request": {}}'])]
    chunk = Chunk(0, len(whole), zlib.compress("\n".join(whole).encode()))
    batch = batches.submit(JobSubmission(tenant=tenant, fingerprint="", hours=24, name=name), [chunk]).id
    record(database, batch, {n: line for n, line in enumerate(lines) if n != waiting})
    if over:
        ended(database, batch)
    return batch


def record(database: Database, batch: str, lines: Mapping[int, str]) -> None:
    """Scores items of the only chunk of a batch, and records what came of them."""
    assert opened(database, batch, 0) or rows_of(database, batch)[0].state == "running"
    [row] = rows_of(database, batch)
    scorer = ItemScorer(build_engine(Settings()), Limits())
    rows = scorer.begin([ChunkItem(n, line.encode()) for n, line in lines.items()])
    assert not [row for row in rows if isinstance(row, WaitingItem)]
    assert Chunks(database, PLAYER).record([OutcomeRows(hold(row), rows)]) == [True]  # pyright: ignore[reportArgumentType]


def build_call(name: str, arguments: object, number: int) -> dict[str, Any]:
    """A message of the model with one call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def build_request(number: int, **more: Any) -> dict[str, Any]:
    """A refund: every third is of another amount than expected, every seventh a call of another tool."""
    parameters = {"type": "object", "properties": {"order_id": {"type": "string"}, "cents": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": n, "parameters": parameters}} for n in ("get_order", "refund")]
    cents = 5_400 + number
    called = "refund" if number % 7 else "get_order"
    arguments = {"order_id": str(number), "cents": cents if number % 3 else 10 * cents}
    messages = [
        {"role": "user", "content": f"Refund order {number}."},
        build_call(called, arguments, 1),
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"cents": cents})},
        {"role": "assistant", "content": "Done."},
    ]
    return {
        "trace": {"format": "openai", "tools": tools, "messages": messages},
        "expected": {"calls": [{"tool": "refund", "args": {"order_id": str(number), "cents": cents}}]},
        "tags": {"difficulty": ("easy", "hard")[number % 2]},
        **({"judges": "cached"} if number == NOBODY else {"judges": "off"} if number % 5 else {}),
        **more,
    }
