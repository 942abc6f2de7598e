"""Bound what each tenant holds: requests, long transfers, watches, and bytes of bodies in memory.

A tenant, or an address if there are no keys, may hold as much as it leaves for the others (`Shares`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.access import find_payer
from service.api.body import read_declared_length
from service.api.fairness.shares import Shares
from service.api.problems import render_refusal

ALWAYS_ANSWERED = frozenset({"/livez", "/readyz", "/metrics"})
"""Routes that are answered however busy the process is: restarting it for being busy would help nobody."""

TRANSFER = re.compile(
    r"/v1/(?:batches|calibrations)(?:/[^/]+/(?:results|errors))?|/v1/labels/(?:import|export)|/runs/[^/]+/(?:results|errors)"
)
WATCH = re.compile(r"(?:/v1/(?:batches|calibrations)|/runs)/[^/]+/events")

SEND_TIMEOUT_S = 60.0
"""Seconds for a client to take the next part of a stream; one that does not read loses its place."""

RETRY_HEADER = {"retry-after": "1"}


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request, and the places that its requests share."""

    places: Shares
    description: str
    is_stream: bool = False
    """Whether its requests last long and take little: bodies go to a file, and clients must read in time."""


class ProcessLoad:
    """What is running in a process."""

    def __init__(self, *, requests: int, each: int | None, streams: int, body_bytes: int, largest: int) -> None:
        """`requests` at once, `each` of them of one tenant; `streams` of each kind; `body_bytes` of requests in memory.

        `largest`: bytes of one body, beyond which it is refused. There is always room for one of these.
        """
        self.bodies = Shares(max(body_bytes, 2 * largest))
        self.largest = largest
        self._requests = RequestKind(Shares(requests, each=each), "requests under way")
        self._transfers = RequestKind(Shares(streams), "batches sent or fetched", is_stream=True)
        self._watches = RequestKind(Shares(streams), "batches watched", is_stream=True)

    def find_kind(self, path: str) -> RequestKind:
        """Return the kind of a request by its path."""
        if WATCH.fullmatch(path):
            return self._watches
        return self._transfers if TRANSFER.fullmatch(path) else self._requests


class Fairness:
    """Passes on a request that its sender has room for; else answers 429, or 503 if others hold everything."""

    def __init__(self, app: ASGIApp, *, load: ProcessLoad) -> None:
        self.app = app
        self.load = load

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_ANSWERED:
            await self.app(scope, receive, send)
            return
        kind = self.load.find_kind(scope["path"])
        try:
            await self._pass(kind, scope, receive, send)
        except HTTPException as error:
            await render_refusal(error)(scope, receive, send)

    async def _pass(self, kind: RequestKind, scope: Scope, receive: Receive, send: Send) -> None:
        name = find_payer(scope)
        with _hold_place(kind.places, name, kind.description):
            if kind.is_stream:
                await self.app(scope, receive, _bound_sending(send))
                return
            body = _CountedBody(self.load, name, receive)
            try:
                body.count(read_declared_length(Headers(scope=scope)))
                await self.app(scope, body.receive, send)
            finally:
                body.drop()


class _CountedBody:
    """The bytes of one body, counted from their announcement until the response."""

    def __init__(self, load: ProcessLoad, name: str, receive: Receive) -> None:
        self._shares = load.bodies
        self._largest = load.largest
        self._name = name
        self._receive = receive
        self._seen = 0
        self._counted = 0

    async def receive(self) -> Message:
        """Receive the next message, and count it."""
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        self.count(self._seen)
        return message

    def count(self, size: float) -> None:
        """Count a body of that many bytes; HTTPException 429 or 503 if there is no room."""
        more = int(min(size, self._largest)) - self._counted
        if more <= 0:
            return
        if not self._shares.take(self._name, more):
            raise _build_full_error(self._shares, self._name, "bytes of bodies")
        self._counted += more

    def drop(self) -> None:
        """Stop counting the body; its bytes are no longer needed."""
        if self._counted:
            self._shares.give(self._name, self._counted)


@contextmanager
def _hold_place(places: Shares, name: str, description: str) -> Generator[None]:
    if not places.take(name):
        raise _build_full_error(places, name, description)
    try:
        yield
    finally:
        places.give(name)


def _build_full_error(shares: Shares, name: str, description: str) -> HTTPException:
    """Build a 429 for a sender that holds some of it, or a 503 for one that gets nothing because of others."""
    if held := shares.count_held(name):
        return HTTPException(
            429, f"you have {held} {description}, and more would leave too little for others", RETRY_HEADER
        )
    return HTTPException(503, f"over {shares.capacity} {description}", RETRY_HEADER)


def _bound_sending(send: Send) -> Send:
    """Send, and raise ClientDisconnect if the client does not read in time."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send(message)
        except TimeoutError:
            raise ClientDisconnect from None

    return send_in_time
