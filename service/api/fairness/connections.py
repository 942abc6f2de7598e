"""Connections as the server holds them: one that only waits is let go of, so that nobody keeps others out by waiting.

uvicorn bounds the time between two requests, and neither that of a head that never ends nor that of an answer that is never read.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.api.key_cache import mask_address
from service.api.problems import MEDIA_TYPE, PROBLEM, build_details

if TYPE_CHECKING:
    from uvicorn.server import ServerState

HEAD_TIMEOUT_S = 10.0
"""Seconds in which the head of a request must have come whole, from the first byte or from the start of the connection."""

UNREAD_TIMEOUT_S = 60.0
"""Seconds in which a client must have read something of an answer that waits for it."""

MAX_WAITING = 1_000
"""Connections without a request under way. Beyond, one of the address that has the most of them is closed."""

FILES = 16_384
"""Open files that a process allows itself, where it may; each connection is one."""


class Connection(H11Protocol):
    """One connection, that is watched while no request of it is under way."""

    deadline: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (uvicorn's own)
        """A client has connected."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Bytes have come: more of a head, of a body, or a whole request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """An answer is written."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        super().connection_lost(exc)
        self._forget()
        self._stop_reading_watch()

    def pause_writing(self) -> None:
        """More is to be read than the client takes."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """The client has taken nearly all of it."""
        super().resume_writing()
        self._stop_reading_watch()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is under way: the next has not come whole, or the rest of an answered one has not."""
        return not self.cycle or self.cycle.response_complete

    def end(self) -> None:
        """Closes a connection that waits, with an answer where a request has begun."""
        self._forget()
        if self.conn.our_state is h11.IDLE and self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(_TOO_SLOW)
        self.transport.close()

    def _watch(self) -> None:
        """A deadline stands from the moment that a connection waits, whatever drips in, until a request is under way."""
        if not self.is_waiting:
            self._forget()
        elif self.deadline is None:
            IdleConnections.of(self.server_state).add(self)
            self.deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.end)

    def _watch_reading(self) -> None:
        size = self.transport.get_write_buffer_size()
        self.unread = self.loop.call_later(UNREAD_TIMEOUT_S, self._check_reading, size)

    def _check_reading(self, before: int) -> None:
        """Goes on while the client reads, however slowly."""
        if self.transport.get_write_buffer_size() < before:
            self._watch_reading()
        else:
            self.transport.abort()

    def _stop_reading_watch(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None

    def _forget(self) -> None:
        IdleConnections.of(self.server_state).drop(self)
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class IdleConnections:
    """The connections of one server that wait, the one that has waited longest first."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._connections: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()

    @staticmethod
    def of(state: ServerState) -> IdleConnections:
        """Those of the server with this state."""
        return _WAITING.setdefault(state, IdleConnections())

    def add(self, connection: Connection) -> None:
        """One more; where there are too many, the first of the address that has the most is closed."""
        if connection in self._connections:
            return
        address = mask_address((connection.client or ("", 0))[0])
        self._connections[connection] = address
        self._by_address[address] += 1
        if len(self._connections) > self._most:
            [(greediest, _)] = self._by_address.most_common(1)
            next(one for one, at in self._connections.items() if at == greediest).end()

    def drop(self, connection: Connection) -> None:
        """One less."""
        address = self._connections.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


_WAITING: WeakKeyDictionary[ServerState, IdleConnections] = WeakKeyDictionary()


def allow_files(wanted: int = FILES) -> None:
    """Lets this process open as many files as it may, up to `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _render_answer(status: int, phrase: str, detail: str) -> bytes:
    """A whole response that ends its connection."""
    body = PROBLEM.dump_json(build_details(status, detail))
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


_TOO_SLOW = _render_answer(
    408, "Request Timeout", f"the head of the request did not come within {HEAD_TIMEOUT_S:g} seconds"
)
