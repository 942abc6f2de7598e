"""Connections of the server: bounded in what they send before a request counts, and closed if they only wait.

uvicorn bounds the time between two requests, but not the time of a head that never ends nor of a response that is never
read. Its parser, httptools, refuses what two readers could read differently (a length beside chunks, spaces before a
colon), but bounds nothing: not the bytes of a head or of trailers, nor the requests that are pipelined ahead of
responses.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.key_cache import mask_address
from service.api.problems import MEDIA_TYPE
from service.problems import PROBLEM, build_details

if TYPE_CHECKING:
    from uvicorn.server import ServerState

HEAD_TIMEOUT_S = 10.0
"""Seconds for a complete request head, from its first byte or from the start of the connection."""

UNREAD_TIMEOUT_S = 60.0
"""Seconds in which a client must read something of a response that waits for it."""

MAX_HEAD_BYTES = 65_536
"""Most bytes of a head, and of anything that is neither head nor body: trailers, empty lines."""

MAX_AHEAD = 32
"""Most requests of one connection that wait for the response to the one before."""

MAX_WAITING = 1_000
"""Most connections without a running request. Beyond it, one of the address that has the most is closed."""

MAX_OPEN_FILES = 16_384
"""Open files that a process allows itself, if it may; each connection is one."""


class UnacceptableHeadError(Exception):
    """A head that can be parsed and is refused nevertheless."""


class Connection(HttpToolsProtocol):
    """One connection, watched while no request of it is running."""

    deadline: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None
    idle_bytes = 0
    """Bytes since the last that were part of a request."""
    in_head = False
    """Whether a head has begun and is not complete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (uvicorn's own)
        """Watch a new connection."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Parse the bytes that came: more of a head, more of a body, or a whole request."""
        self._unset_keepalive_if_required()
        self.idle_bytes += len(data)
        try:
            self._parse(data)
        except HttpParserError:
            self.send_400_response("The request cannot be read as HTTP/1.1.")
        else:
            if self.idle_bytes > MAX_HEAD_BYTES:
                self.send_400_response(f"The head of a request may have at most {MAX_HEAD_BYTES} bytes.")
        self._watch()

    def _parse(self, data: bytes) -> None:
        """Parse the bytes. An upgrade request is parsed again without the upgrade: httptools would skip its body."""
        while True:
            try:
                self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess] (until the connection is gone)
            except HttpParserUpgrade as upgrade:
                data = self._render_head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = HttpRequestParser(self)
            else:
                return

    def _render_head_without_upgrade(self) -> bytes:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()  # pyright: ignore[reportOptionalMemberAccess] (as before)
        lines = [b"%b: %b\r\n" % (name, value) for name, value in self.headers if name != b"upgrade"]
        return b"".join([b"%b %b HTTP/%b\r\n" % (method, self.url, version), *lines, b"\r\n"])

    def on_message_begin(self) -> None:
        """Note that a head has begun."""
        super().on_message_begin()
        self.in_head = True

    def on_headers_complete(self) -> None:
        """Check a complete head; an exception stops the parser, and is answered with 400."""
        self.idle_bytes = 0
        parser = self.parser
        _check_head(parser, self.url, self.headers)
        if len(self.pipeline) >= MAX_AHEAD:
            raise UnacceptableHeadError("too many requests ahead of their answers")
        if parser.should_upgrade():
            return  # it is parsed again without the upgrade
        self.in_head = False
        super().on_headers_complete()
        self.headers = []  # trailers are no part of the head

    def on_body(self, body: bytes) -> None:
        """Accept a piece of a body."""
        self.idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Accept the end of a request."""
        self.idle_bytes = 0
        if not self.in_head:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed. A complete request before it is still answered; then the connection ends."""
        if self.is_waiting or (self.cycle.more_body and not self.cycle.response_started):
            super().send_400_response(msg)
        elif self.cycle.more_body:
            self.transport.close()
        else:
            self.cycle.keep_alive = False
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """Watch the connection again once a response is written."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching a closed connection."""
        super().connection_lost(exc)
        self._forget()
        self._stop_reading_watch()

    def pause_writing(self) -> None:
        """Watch that the client reads, because the write buffer is full."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """Stop that watch, because the client has read nearly all of the buffer."""
        super().resume_writing()
        self._stop_reading_watch()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is running: the next is incomplete, or so is the rest of one that was answered."""
        return not self.cycle or self.cycle.response_complete

    def end(self) -> None:
        """Close a waiting connection, with a response if a request has begun."""
        self._forget()
        if self.in_head:
            self.transport.write(_TOO_SLOW)
        self.transport.close()

    def _watch(self) -> None:
        """Set a deadline from the moment a connection waits until a request runs, whatever drips in meanwhile."""
        if not self.is_waiting:
            self._forget()
        elif self.deadline is None:
            IdleConnections.for_server(self.server_state).add(self)
            self.deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.end)

    def _watch_reading(self) -> None:
        size = self.transport.get_write_buffer_size()
        self.unread = self.loop.call_later(UNREAD_TIMEOUT_S, self._check_reading, size)

    def _check_reading(self, before: int) -> None:
        """Keep watching while the client reads, however slowly; else abort."""
        if self.transport.get_write_buffer_size() < before:
            self._watch_reading()
        else:
            self.transport.abort()

    def _stop_reading_watch(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None

    def _forget(self) -> None:
        IdleConnections.for_server(self.server_state).drop(self)
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def _check_head(parser: HttpRequestParser, url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Raise UnacceptableHeadError for a head that the parser accepts and nobody should send."""
    version, size, hosts = parser.get_http_version(), len(url), 0
    for name, value in headers:
        size += len(name) + len(value)
        hosts += name == b"host"
        if name == b"transfer-encoding" and value.lower() != b"chunked":
            raise UnacceptableHeadError("chunked is the only transfer encoding that is accepted")
    if size > MAX_HEAD_BYTES:
        raise UnacceptableHeadError("the head is too large")
    if version not in _VERSIONS or parser.get_method() == b"CONNECT" or b"#" in url:
        raise UnacceptableHeadError("not an HTTP/1.1 request to this server")
    if hosts > 1 or (version == "1.1" and not hosts):
        raise UnacceptableHeadError("a request must name its host exactly once")


_VERSIONS = frozenset({"1.0", "1.1"})


class IdleConnections:
    """The waiting connections of one server, the one that has waited longest first."""

    def __init__(self, limit: int = MAX_WAITING) -> None:
        self._limit = limit
        self._connections: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()

    @staticmethod
    def for_server(state: ServerState) -> IdleConnections:
        """Return those of the server with this state."""
        return _BY_SERVER.setdefault(state, IdleConnections())

    def add(self, connection: Connection) -> None:
        """Add a connection; if there are too many, close the oldest of the address that has the most."""
        if connection in self._connections:
            return
        address = mask_address((connection.client or ("", 0))[0])
        self._connections[connection] = address
        self._by_address[address] += 1
        if len(self._connections) > self._limit:
            [(busiest, _)] = self._by_address.most_common(1)
            next(one for one, owner in self._connections.items() if owner == busiest).end()

    def drop(self, connection: Connection) -> None:
        """Remove a connection."""
        address = self._connections.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


_BY_SERVER: WeakKeyDictionary[ServerState, IdleConnections] = WeakKeyDictionary()


def raise_file_limit(target: int = MAX_OPEN_FILES) -> None:
    """Raise this process's limit of open files to `target`, or as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = target if hard == resource.RLIM_INFINITY else min(target, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


_TOO_SLOW_BODY = PROBLEM.dump_json(
    build_details(408, f"the head of the request did not come within {HEAD_TIMEOUT_S:g} seconds")
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
    MEDIA_TYPE.encode(),
    len(_TOO_SLOW_BODY),
    _TOO_SLOW_BODY,
)
"""The whole response that ends a connection whose head takes too long."""
