"""What every request passes through: a bound on how many are under way, an id, a log line and a count.

Pure ASGI: it neither wraps streams nor starts tasks, so cancellation and back-pressure stay what the server makes them.
"""

from __future__ import annotations

import logging
import re
import time
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.metrics import Metrics
from service.api.problems import details, problem

LOG = logging.getLogger("callgrade.access")
SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class Front:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, max_concurrency: int) -> None:
        self.app = app
        self.metrics = metrics
        self.max_concurrency = max_concurrency
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or passes on what is none."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        seen = _Seen(scope, send)
        self.under_way += 1
        try:
            await self._answer(scope, receive, seen)
        finally:
            self.under_way -= 1
            self._record(scope, seen)

    async def _answer(self, scope: Scope, receive: Receive, seen: _Seen) -> None:
        if self.under_way > self.max_concurrency and scope["path"] not in ("/livez", "/readyz", "/metrics"):
            busy = problem(details(503, f"over {self.max_concurrency} requests under way"), {"retry-after": "1"})
            await busy(scope, receive, seen.send)
            return
        await self.app(scope, receive, seen.send)

    def _record(self, scope: Scope, seen: _Seen) -> None:
        seconds = time.perf_counter() - seen.started
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(route, scope["method"], seen.status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if LOG.isEnabledFor(logging.INFO):
            fields = {"method": scope["method"], "route": route, "status": seen.status, "request_id": seen.request_id}
            LOG.info("request", extra={"fields": {**fields, "ms": round(seconds * 1000, 3)}})


class _Seen:
    """One request's id, start and status."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        self.status = 500
        self.request_id = _given_id(scope) or uuid4().hex
        self._send = send

    async def send(self, message: Message) -> None:
        """Sends on, noting the status and adding the id."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        await self._send(message)


def _given_id(scope: Scope) -> str | None:
    """The caller's own X-Request-Id, if it is fit for a log."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return given if SAFE_ID.fullmatch(given) else None
