"""How much of the service each tenant has: requests, long transfers, watches, and bytes of bodies that are held in memory.

What a tenant holds, or an address where there are no keys, is bounded by what it leaves for the others (`Shares`).
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
"""However busy the service is: a process that is restarted for being busy helps nobody."""

TRANSFER = re.compile(
    r"/v1/(?:batches|calibrations)(?:/[^/]+/(?:results|errors))?|/v1/labels/(?:import|export)|/runs/[^/]+/(?:results|errors)"
)
WATCH = re.compile(r"(?:/v1/(?:batches|calibrations)|/runs)/[^/]+/events")

SEND = 60.0
"""Seconds in which a caller must have taken the next part of a stream: one that does not read holds its place no longer."""

AGAIN = {"retry-after": "1"}


@dataclass(frozen=True, slots=True)
class RequestKind:
    """What many requests of one kind hold a place of."""

    places: Shares
    told: str
    lasting: bool = False
    """Whether it lasts long and takes little. Then its body goes to a file, and what it is sent must be taken in time."""


class ProcessLoad:
    """What is under way in a process."""

    def __init__(self, *, requests: int, each: int | None, streams: int, body_bytes: int, largest: int) -> None:
        """`requests` at once, and `each` of one tenant; `streams` of each kind; `body_bytes` of requests in memory.

        `largest`: bytes of one body, beyond which it is refused and not kept. There is always room for one of these.
        """
        self.bodies = Shares(max(body_bytes, 2 * largest))
        self.largest = largest
        self._requests = RequestKind(Shares(requests, each=each), "requests under way")
        self._transfers = RequestKind(Shares(streams), "batches sent or fetched", lasting=True)
        self._watches = RequestKind(Shares(streams), "batches watched", lasting=True)

    def of(self, path: str) -> RequestKind:
        """The kind of a request by its path."""
        if WATCH.fullmatch(path):
            return self._watches
        return self._transfers if TRANSFER.fullmatch(path) else self._requests


class Fairness:
    """Lets a request pass that its sender has room for, or answers 429; 503 where others hold all there is."""

    def __init__(self, app: ASGIApp, *, load: ProcessLoad) -> None:
        self.app = app
        self.load = load

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes one request on, or refuses it."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_ANSWERED:
            await self.app(scope, receive, send)
            return
        kind = self.load.of(scope["path"])
        try:
            await self._pass(kind, scope, receive, send)
        except HTTPException as error:
            await render_refusal(error)(scope, receive, send)

    async def _pass(self, kind: RequestKind, scope: Scope, receive: Receive, send: Send) -> None:
        name = find_payer(scope)
        with _hold_place(kind.places, name, kind.told):
            if kind.lasting:
                await self.app(scope, receive, _bound_sending(send))
                return
            body = _CountedBody(self.load, name, receive)
            try:
                body.count(read_declared_length(Headers(scope=scope)))
                await self.app(scope, body.receive, send)
            finally:
                body.drop()


class _CountedBody:
    """The bytes of one body, counted from the moment they are announced until the request is answered."""

    def __init__(self, load: ProcessLoad, name: str, receive: Receive) -> None:
        self._shares = load.bodies
        self._largest = load.largest
        self._name = name
        self._receive = receive
        self._seen = 0
        self._counted = 0

    async def receive(self) -> Message:
        """The next message, counted."""
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        self.count(self._seen)
        return message

    def count(self, size: float) -> None:
        """Counts a body of so many bytes. HTTPException 429 or 503 where there is no room."""
        more = int(min(size, self._largest)) - self._counted
        if more <= 0:
            return
        if not self._shares.take(self._name, more):
            raise _build_full_error(self._shares, self._name, "bytes of bodies")
        self._counted += more

    def drop(self) -> None:
        """The bytes are needed no longer."""
        if self._counted:
            self._shares.give(self._name, self._counted)


@contextmanager
def _hold_place(places: Shares, name: str, told: str) -> Generator[None]:
    if not places.take(name):
        raise _build_full_error(places, name, told)
    try:
        yield
    finally:
        places.give(name)


def _build_full_error(shares: Shares, name: str, told: str) -> HTTPException:
    """429 to one who holds some of it, 503 to one who gets nothing because of others."""
    if held := shares.count_held(name):
        return HTTPException(429, f"you have {held} {told}, and more would leave too little for others", AGAIN)
    return HTTPException(503, f"over {shares.most} {told}", AGAIN)


def _bound_sending(send: Send) -> Send:
    """Sends, and gives up on a caller who does not take it: ClientDisconnect."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(SEND):
                await send(message)
        except TimeoutError:
            raise ClientDisconnect from None

    return send_in_time
