"""The way from litellm to a provider: limited in size and time, following no redirects, to checked addresses only.

Each call to a model has a `BoundTransport` of its own, which takes the call's notes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import urllib.request
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache

import aiohttp
import httpx
from yarl import URL

from service.outbound.addresses import is_reachable
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes, Fault, holds_more_values

_DROPPED_HEADERS = frozenset({"content-length", "transfer-encoding", "set-cookie"})
"""Headers that say how a body came; and cookies, which a client would send with later calls."""

MAX_REFUSAL_BYTES = 65_536
"""Bytes of an error answer to search; a gateway may send a whole page."""

_NOT_SENT = frozenset[Fault]({"no connection", "late connection", "refused address"})

_SESSIONS: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
"""The connections that are kept, by the event loop that they belong to."""


class NoReplyError(httpx.TransportError):
    """Raised to litellm in place of an answer; none of the errors after which it retries by itself."""


class RefusedAddressError(OSError):
    """The address may not be connected to."""


class _ExchangeFailure(Exception):  # noqa: N818 (a step, not an error that leaves this module)
    def __init__(self, fault: Fault) -> None:
        self.fault: Fault = fault
        super().__init__(fault)


CURRENT: ContextVar[httpx.AsyncBaseTransport] = ContextVar("transport")
"""The transport of the call that is being made."""


class CurrentTransport(httpx.AsyncBaseTransport):
    """Passes a request on to the transport of the call that makes it, so that calls share clients, which are slow to build."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer."""
        return await CURRENT.get().handle_async_request(request)


class BoundTransport(httpx.AsyncBaseTransport):
    """Sends the requests of one call within its bounds, and notes what became of each."""

    def __init__(self, notes: ExchangeNotes, find_tls: Callable[[], ssl.SSLContext | bool]) -> None:
        """`find_tls` returns how connections are secured."""
        self._notes = notes
        self._find_tls = find_tls

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer, whole. Raises NoReplyError if there is none that may be passed on."""
        notes = self._notes
        notes.begin()
        try:
            async with asyncio.timeout(notes.bounds.total_s):
                response = await self._exchange(request)
        except (_ExchangeFailure, TimeoutError, aiohttp.ClientError, OSError) as error:
            notes.fault = _name_fault(error)
        else:
            notes.answers += 1
            return response
        notes.sent = notes.sent or notes.fault not in _NOT_SENT
        raise NoReplyError(notes.fault, request=request)

    async def _exchange(self, request: httpx.Request) -> httpx.Response:
        notes = self._notes
        answer = await _get_session(self._find_tls).request(
            request.method,
            URL(str(request.url), encoded=True),
            headers=dict(request.headers.items()) | {"accept-encoding": "identity"},  # so that no reply hides its size
            data=await request.aread() or None,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(connect=notes.bounds.connect_s),
            proxy=_find_proxy(request.url.scheme, request.url.host),
        )
        try:
            notes.sent, notes.status = True, answer.status
            notes.retry_after = answer.headers.get("retry-after", "")[:100]
            if 300 <= answer.status < 400:
                raise _ExchangeFailure("redirect")
            body = await _fetch_body(answer, notes.bounds)
        finally:
            answer.close()
        if answer.status >= 400:
            notes.refusal = body[:MAX_REFUSAL_BYTES]
        headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _DROPPED_HEADERS]
        return httpx.Response(answer.status, headers=headers, content=body, request=request)


def _name_fault(error: Exception) -> Fault:
    if isinstance(error, _ExchangeFailure):
        return error.fault
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, RefusedAddressError):
        return "refused address"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "late connection"
    if isinstance(error, TimeoutError):
        return "late"
    unconnected = aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError | aiohttp.InvalidURL
    return "no connection" if isinstance(error, unconnected) else "broken"


async def _fetch_body(answer: aiohttp.ClientResponse, bounds: ExchangeBounds) -> bytes:
    if answer.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise _ExchangeFailure("packed")
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > bounds.max_bytes:
            raise _ExchangeFailure("too long")
    if holds_more_values(whole := bytes(body), bounds.max_values):
        raise _ExchangeFailure("too many")
    return whole


@lru_cache(maxsize=256)
def _find_proxy(scheme: str, host: str) -> str | None:
    """Find the proxy that the environment names for a host; it is searched once for each."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _get_session(find_tls: Callable[[], ssl.SSLContext | bool]) -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    if loop not in _SESSIONS:
        connector = aiohttp.TCPConnector(ssl=find_tls(), limit=0, ttl_dns_cache=30, socket_factory=open_checked_socket)
        _SESSIONS[loop] = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )
    return _SESSIONS[loop]


async def close_connections() -> None:
    """Close the connections of this event loop, before it ends; a later call reconnects."""
    _find_proxy.cache_clear()
    session = _SESSIONS.pop(asyncio.get_running_loop(), None)
    if session is not None:
        await session.close()


def open_checked_socket(place: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    """Open a socket to an address of a name, once per connection. Raises RefusedAddressError for a forbidden one.

    Private addresses are allowed, as users may run a model there.
    """
    family, kind, protocol, _, address = place
    if not is_reachable(str(address[0]), allow_private=True):
        raise RefusedAddressError("an address that may not be connected to")
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock
