"""The one middleware: who calls, is there room, which route answers; an id, a log line and a count for every request.

Pure ASGI: it neither wraps streams nor starts tasks, so cancellation and back-pressure work as the server makes them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from contextlib import suppress
from secrets import token_hex

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.access import Access
from service.api.body import is_expected
from service.api.contract import JsonRoute
from service.api.fairness import Fairness
from service.api.metrics import METHODS, OTHER, ServiceMetrics
from service.api.problems import render_problem, render_refusal
from service.errors import CallgradeError
from service.problems import build_details
from service.store.access.keys import NAMELESS, Caller

LOG = logging.getLogger("callgrade.access")

SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

CLIENT_GONE_STATUS = 499
"""Counted if the client leaves before the response; it is never sent."""


MAX_UNREAD_BYTES = 16 * 2**20
"""Bytes of a body that are still read, and thrown away, once its request is answered."""

UNREAD_S = 10.0
"""Seconds for which they are."""

MAX_UNREAD = 200
"""Most answered requests whose bodies are read on at once."""


class RequestMiddleware:
    """The outermost layer of the application. Whatever fails below it becomes a problem document here."""

    def __init__(self, app: ASGIApp, *, access: Access, fairness: Fairness, metrics: ServiceMetrics) -> None:
        self.app = app
        self.access = access
        self.fairness = fairness
        self.metrics = metrics
        self._unread = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, its Caller in `scope["state"]["caller"]`; refuse a websocket."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # we have no such routes
            await send({"type": "websocket.close", "code": 1008})
            return
        exchange = _Exchange(scope, receive, send)
        self.metrics.in_flight += 1
        try:
            await self._answer(exchange)
        finally:
            self.metrics.in_flight -= 1
            self._record(exchange)
        if exchange.held_open:
            await self._close(exchange)

    async def _close(self, exchange: _Exchange) -> None:
        self._unread += 1
        try:
            if self._unread <= MAX_UNREAD:
                await exchange.discard_body()
        finally:
            self._unread -= 1
        await exchange.end()

    async def _answer(self, exchange: _Exchange) -> None:
        scope = exchange.scope
        try:
            scope.setdefault("state", {})["caller"] = await self.access(scope)
            route = scope.get("route")
            app = route.handle if isinstance(route, JsonRoute) and route.is_direct else self.app
            await self.fairness(app, scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            exchange.status = CLIENT_GONE_STATUS
        except Exception as error:
            if isinstance(error, HTTPException | CallgradeError) and not exchange.response_started:
                await exchange.send_whole(render_refusal(error))
                return
            # A bug of ours: the caller learns no more than that.
            LOG.exception("unhandled error", extra={"fields": {"request_id": exchange.request_id}})
            if exchange.response_started:
                raise
            detail = "an internal error; the log has it under the id in x-request-id"
            await exchange.send_whole(render_problem(build_details(500, detail)))

    def _record(self, exchange: _Exchange) -> None:
        seconds = time.perf_counter() - exchange.started_at
        route, method, status = exchange.route, exchange.method, exchange.status
        self.metrics.count_answer(route, method, status, seconds)
        if LOG.isEnabledFor(logging.INFO):
            fields = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 3)}
            fields |= {"request_id": exchange.request_id} | exchange.key_field
            LOG.info("request", extra={"fields": fields})


class _Exchange:
    """One request and the state of its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.started_at = time.perf_counter()
        self.status = 500
        self.response_started = False
        headers = Headers(scope=scope)
        given_id = headers.get("x-request-id", "")
        self.request_id = given_id if SAFE_ID.fullmatch(given_id) else token_hex(16)
        self.method: str = scope["method"] if scope["method"] in METHODS else OTHER
        self.head = scope["method"] == "HEAD"
        # A copy: servers look into their own scope to see whether the response has a body.
        self.scope: Scope = {**scope, "method": "GET"} if self.head else scope
        self.held_open = False
        """Whether the response is sent but not ended: the server would close the connection on a body that still comes."""
        # That the server ends the connection with the response, and nothing (`100 Continue`) holds the body back.
        closes = scope.get("http_version") == "1.0" or "close" in headers.get("connection", "").lower()
        self._body_comes = closes and is_expected(headers) and "expect" not in headers
        self._receive = receive
        self._send = send

    @property
    def route(self) -> str:
        """The path template of the route that answered."""
        return getattr(self.scope.get("route"), "path", OTHER)

    @property
    def key_field(self) -> dict[str, str]:
        """The log field with the id of the caller's key, if there is one."""
        caller: Caller = self.scope.get("state", {}).get("caller", NAMELESS)
        return {"key": caller.key_id} if caller.key_id else {}

    async def receive(self) -> Message:
        """Receive the next message."""
        message = await self._receive()
        self._body_comes = self._body_comes and message.get("more_body", False)
        return message

    async def discard_body(self) -> None:
        """Read on, within bounds: a client that is cut off while it sends never reads the response."""
        seen = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_S):
                while self._body_comes and seen <= MAX_UNREAD_BYTES:
                    seen += len((await self.receive()).get("body", b""))

    async def end(self) -> None:
        """End a response that was held open."""
        await self._send({"type": "http.response.body"})

    async def send(self, message: Message) -> None:
        """Send on; record the status, add the request id, and drop the body of a response to HEAD."""
        if message["type"] == "http.response.start":
            self.response_started = True
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        else:
            self.held_open = self._body_comes and not message.get("more_body", False)
            if self.head or self.held_open:
                body = b"" if self.head else message.get("body", b"")
                message = {**message, "body": body, "more_body": message.get("more_body", False) or self.held_open}
        await self._send(message)

    async def send_whole(self, response: Response) -> None:
        """Send a response that was not made by a route."""
        await response(self.scope, self.receive, self.send)
