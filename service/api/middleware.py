"""What every request passes through: an id, a log line and a count.

Pure ASGI: it neither wraps streams nor starts tasks, so cancellation and back-pressure stay what the server makes them.
"""

from __future__ import annotations

import logging
import re
import time
from secrets import token_hex

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.metrics import METHODS, OTHER, ServiceMetrics
from service.api.problems import build_details, render_problem
from service.store.access.callers import NAMELESS, Caller

LOG = logging.getLogger("callgrade.access")

SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

GONE = 499
"""Counted for a caller who left before the answer; nothing is sent."""


class RequestMiddleware:
    """The outermost layer of the application. Whatever fails below becomes a problem document here."""

    def __init__(self, app: ASGIApp, *, metrics: ServiceMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or passes on what is none."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        self.metrics.in_flight.inc()
        try:
            await self._answer(exchange, receive)
        finally:
            self.metrics.in_flight.dec()
            self._record(exchange)

    async def _answer(self, exchange: _Exchange, receive: Receive) -> None:
        try:
            await self.app(exchange.scope, receive, exchange.send)
        except ClientDisconnect:
            exchange.status = GONE
        except Exception:  # what nobody foresaw is ours: the caller learns no more than that
            LOG.exception("unhandled error", extra={"fields": {"request_id": exchange.request_id}})
            if exchange.begun:
                raise
            await exchange.fail(500, "an error of ours; the log holds it under the id in x-request-id")

    def _record(self, exchange: _Exchange) -> None:
        seconds = time.perf_counter() - exchange.started
        route, method, status = exchange.route, exchange.method, exchange.status
        self.metrics.count_answer(route, method, status, seconds)
        if LOG.isEnabledFor(logging.INFO):
            fields = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 3)}
            fields |= {"request_id": exchange.request_id} | exchange.named
            LOG.info("request", extra={"fields": fields})


class _Exchange:
    """One request and what became of it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        self.status = 500
        self.begun = False
        self.request_id = _read_given_id(scope) or token_hex(16)
        self.method: str = scope["method"] if scope["method"] in METHODS else OTHER
        self.head = scope["method"] == "HEAD"
        # A copy: servers look into their own to see whether a body belongs to the answer.
        self.scope: Scope = {**scope, "method": "GET"} if self.head else scope
        self._send = send

    @property
    def route(self) -> str:
        """The template of the route that answered."""
        return getattr(self.scope.get("route"), "path", OTHER)

    @property
    def named(self) -> dict[str, str]:
        """The id of the caller's key, where one was asked for."""
        caller: Caller = self.scope.get("state", {}).get("caller", NAMELESS)
        return {"key": caller.key_id} if caller.key_id else {}

    async def send(self, message: Message) -> None:
        """Sends on, noting the status, adding the id, and leaving the body out where HEAD asked for none."""
        if message["type"] == "http.response.start":
            self.begun = True
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        elif self.head:
            message = {**message, "body": b""}
        await self._send(message)

    async def fail(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        """Answers with a problem document."""
        await render_problem(build_details(status, detail), headers)(self.scope, _receive_nothing, self.send)


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _read_given_id(scope: Scope) -> str | None:
    """The caller's own X-Request-Id, if it is fit for a log."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return given if SAFE_ID.fullmatch(given) else None
