"""Connections as the server holds them: bounded in what they send before it counts, and let go of where they only wait.

uvicorn bounds the time between two requests, and neither that of a head that never ends nor that of an answer that is never read.
Its parser, httptools, refuses what two readers could read in two ways (a length beside chunks, spaces before a colon), and bounds
nothing: not the bytes of a head or of what trails a body, nor the requests that are sent ahead of answers.
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
from service.api.problems import MEDIA_TYPE, PROBLEM, build_details

if TYPE_CHECKING:
    from uvicorn.server import ServerState

HEAD_TIMEOUT_S = 10.0
"""Seconds in which the head of a request must have come whole, from the first byte or from the start of the connection."""

UNREAD_TIMEOUT_S = 60.0
"""Seconds in which a client must have read something of an answer that waits for it."""

MAX_HEAD_BYTES = 65_536
"""Bytes of a head; and of anything that comes without a head, a piece of a body or the end of one: trailers, empty lines."""

MAX_AHEAD = 32
"""Requests of one connection that wait for the answer to the one before."""

MAX_WAITING = 1_000
"""Connections without a request under way. Beyond, one of the address that has the most of them is closed."""

FILES = 16_384
"""Open files that a process allows itself, where it may; each connection is one."""


class UnacceptableHeadError(Exception):
    """A head that can be read, and is not to be taken."""


class Connection(HttpToolsProtocol):
    """One connection, that is watched while no request of it is under way."""

    deadline: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None
    idle_bytes = 0
    """How many have come since the last that led to anything."""
    begun = False
    """Whether a head has begun that has not come whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (uvicorn's own)
        """A client has connected."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Bytes have come: more of a head, of a body, or a whole request."""
        self._unset_keepalive_if_required()
        self.idle_bytes += len(data)
        try:
            self._parse(data)
        except HttpParserError:
            self.send_400_response("The request cannot be read as HTTP/1.1.")
        else:
            if self.idle_bytes > MAX_HEAD_BYTES:
                self.send_400_response(f"The head of a request may have {MAX_HEAD_BYTES} bytes.")
        self._watch()

    def _parse(self, data: bytes) -> None:
        """Reads what came. A request that asks for another protocol is read as if it did not: httptools would skip its body."""
        while True:
            try:
                self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess] (until the connection is gone)
            except HttpParserUpgrade as asked:
                data = self._render_head_without_upgrade() + data[asked.args[0] :]
                self.parser = HttpRequestParser(self)
            else:
                return

    def _render_head_without_upgrade(self) -> bytes:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()  # pyright: ignore[reportOptionalMemberAccess] (as before)
        lines = [b"%b: %b\r\n" % (name, value) for name, value in self.headers if name != b"upgrade"]
        return b"".join([b"%b %b HTTP/%b\r\n" % (method, self.url, version), *lines, b"\r\n"])

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self.begun = True

    def on_headers_complete(self) -> None:
        """A head has come whole; an exception stops the parser, and is answered 400."""
        self.idle_bytes = 0
        parser = self.parser
        _check_head(parser, self.url, self.headers)
        if len(self.pipeline) >= MAX_AHEAD:
            raise UnacceptableHeadError("too many requests ahead of their answers")
        if parser.should_upgrade():
            return  # it is read again without that
        self.begun = False
        super().on_headers_complete()
        self.headers = []  # what trails the body is no part of the head

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self.idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has come whole."""
        self.idle_bytes = 0
        if not self.begun:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What came cannot be read. A request before it that has come whole is answered, and the connection ends then."""
        if self.is_waiting or (self.cycle.more_body and not self.cycle.response_started):
            super().send_400_response(msg)
        elif self.cycle.more_body:
            self.transport.close()
        else:
            self.cycle.keep_alive = False
            self.flow.pause_reading()

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
        if self.begun:
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


def _check_head(parser: HttpRequestParser, url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Raises UnacceptableHeadError for what the parser lets pass and nobody should send."""
    version, size, hosts = parser.get_http_version(), len(url), 0
    for name, value in headers:
        size += len(name) + len(value)
        hosts += name == b"host"
        if name == b"transfer-encoding" and value.lower() != b"chunked":
            raise UnacceptableHeadError("chunks are the one encoding that is taken off")
    if size > MAX_HEAD_BYTES:
        raise UnacceptableHeadError("the head is too large")
    if version not in _VERSIONS or parser.get_method() == b"CONNECT" or b"#" in url:
        raise UnacceptableHeadError("no request of HTTP/1.1 to this server")
    if hosts > 1 or (version == "1.1" and not hosts):
        raise UnacceptableHeadError("a request names its host, once")


_VERSIONS = frozenset({"1.0", "1.1"})


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
