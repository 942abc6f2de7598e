"""The only way from litellm to the network: limited in size and time, following no redirects, to checked addresses only.

litellm creates its clients in two places, one for everything asynchronous, including the SDKs of OpenAI and Azure, and one for
the rest. This module replaces both: what a call of ours (`note_exchanges`) sends is limited, while somebody else's use of litellm
in this process goes on as before. `ExchangeNotes.answers` reveals a reply that came another way, which is refused.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from importlib import import_module
from typing import Protocol, cast

import aiohttp
import httpx

from service.outbound.addresses import is_reachable
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes, Fault, get_notes
from service.outbound.unpacking import ACCEPTED, AnswerBody, PackedError, TooLongError, holds_more_values

Tls = ssl.SSLContext | bool
Handle = Callable[[httpx.Request], Awaitable[httpx.Response]]

_STALE_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that are no longer true once a body is unpacked."""

MAX_REFUSAL_BYTES = 65_536
"""Bytes of an error answer to search; a gateway may send a whole page."""

_NOT_SENT = frozenset[Fault]({"no connection", "late connection", "refused address"})


class NoReplyError(httpx.TransportError):
    """Raised to litellm in place of an answer; none of the errors after which it retries by itself."""


class _ExchangeFailure(Exception):  # noqa: N818 (a step, not an error that leaves this module)
    def __init__(self, fault: Fault) -> None:
        self.fault: Fault = fault
        super().__init__(fault)


def bound_exchange(handle: Handle) -> Handle:
    """Limit an exchange by the bounds of our call that it belongs to, and note it there."""

    async def exchange(request: httpx.Request) -> httpx.Response:
        notes = get_notes()
        if notes is None:
            return await handle(request)
        notes.begin()
        try:
            async with asyncio.timeout(notes.bounds.times.total):
                response = await _fetch_answer(handle, request, notes)
        except TimeoutError:
            fault: Fault = "late body"
        except _ExchangeFailure as error:
            fault = error.fault
        else:
            notes.answers += 1
            return response
        notes.fault = fault
        raise NoReplyError(fault, request=request)

    return exchange


async def _fetch_answer(handle: Handle, request: httpx.Request, notes: ExchangeNotes) -> httpx.Response:
    """Fetch the whole answer, unpacked."""
    response = await _fetch_head(handle, request, notes)
    try:
        if 300 <= response.status_code < 400:
            raise _ExchangeFailure("redirect")
        body = await _fetch_body(response, notes.bounds)
        if response.status_code >= 400:
            notes.refusal = body[:MAX_REFUSAL_BYTES]
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _STALE_HEADERS]
    return httpx.Response(response.status_code, headers=headers, content=body, request=request)


async def _fetch_head(handle: Handle, request: httpx.Request, notes: ExchangeNotes) -> httpx.Response:
    times = notes.bounds.times
    request.headers["accept-encoding"] = ACCEPTED
    request.extensions = {**request.extensions, "timeout": {"connect": times.connect, "pool": times.connect}}
    try:
        async with asyncio.timeout(times.first_byte):
            response = await handle(request)
    except (TimeoutError, httpx.TransportError) as error:
        fault = _name_fault(error, notes)
        notes.sent = notes.sent or fault not in _NOT_SENT
        raise _ExchangeFailure(fault) from None
    notes.sent, notes.fault = True, None
    notes.status, notes.retry_after = response.status_code, response.headers.get("retry-after", "")[:100]
    return response


def _name_fault(error: Exception, notes: ExchangeNotes) -> Fault:
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return "late connection"
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return "late head"
    if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
        return notes.fault or "no connection"  # the address was refused when the socket was opened
    return "broken"


async def _fetch_body(response: httpx.Response, bounds: ExchangeBounds) -> bytes:
    body = await _read(response, bounds.max_bytes)
    if holds_more_values(body, bounds.max_values):
        raise _ExchangeFailure("too many")
    return body


async def _read(response: httpx.Response, most: int) -> bytes:
    try:
        body = AnswerBody(response.headers.get("content-encoding", ""), most=most)
        async for piece in response.aiter_raw():
            body.add(piece)
        return body.finish()
    except TooLongError:
        raise _ExchangeFailure("too long") from None
    except PackedError:
        raise _ExchangeFailure("packed") from None
    except (httpx.TransportError, httpx.StreamError):
        raise _ExchangeFailure("broken") from None


def open_checked_socket(place: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    """Open a socket to an address of a name: once per connection, after the name was resolved.

    Private addresses are allowed, as users may run a model there. Raises OSError for one that must not be connected to.
    """
    family, kind, protocol, _, address = place
    notes = get_notes()
    if notes is not None and not is_reachable(str(address[0]), allow_private=True):
        notes.fault = "refused address"
        raise OSError("an address that may not be connected to")
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


class _Transport(Protocol):
    """litellm's transport: httpx in front, aiohttp behind, with the proxies of the environment."""

    handle_async_request: Handle

    async def aclose(self) -> None: ...


class _Transports(Protocol):
    def __call__(self, *, client: Callable[[], aiohttp.ClientSession], ssl_verify: Tls | None) -> _Transport: ...


class _Handler(Protocol):
    """The part of litellm's synchronous client that we use."""

    ssl_verify: object


class _SyncHandlerType(Protocol):
    create_client: Callable[[_Handler], httpx.Client]


class _AsyncHandlerType(Protocol):
    create_async_transport: Callable[..., _Transport]


class _Handlers(Protocol):
    """The part that we use of the module in which litellm creates its clients."""

    AsyncHTTPHandler: _AsyncHandlerType
    HTTPHandler: _SyncHandlerType

    def get_ssl_configuration(self, ssl_verify: object) -> Tls: ...


class _ClientInternals(Protocol):
    """The private attributes of httpx that we use."""

    _transport: httpx.BaseTransport
    _mounts: dict[object, httpx.BaseTransport | None]


class SyncTransport(httpx.BaseTransport):
    """Limits a synchronous client by sending its requests the asynchronous way, in a thread and a loop of their own."""

    def __init__(self, inner: httpx.BaseTransport, make: Callable[[], _Transport]) -> None:
        self._inner = inner
        self._make = make

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer, read to its end."""
        if get_notes() is None:
            return self._inner.handle_request(request)
        request.read()
        with ThreadPoolExecutor(1, thread_name_prefix="judge-call") as alone:
            return alone.submit(copy_context().run, asyncio.run, self._send(request)).result()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        transport = self._make()
        try:
            return await transport.handle_async_request(request)
        finally:
            await transport.aclose()

    def close(self) -> None:
        """Close the connections of unlimited calls."""
        self._inner.close()


def install() -> None:
    """Install this transport in litellm. Raises AttributeError or ImportError if litellm is built differently now."""
    handlers = cast("_Handlers", import_module("litellm.llms.custom_httpx.http_handler"))
    make: _Transports = import_module("litellm.llms.custom_httpx.aiohttp_transport").LiteLLMAiohttpTransport
    built, _ = (
        handlers.HTTPHandler.create_client,
        handlers.AsyncHTTPHandler.create_async_transport,
    )  # check that both exist

    def create_async_transport(
        ssl_context: ssl.SSLContext | None = None,
        ssl_verify: bool | None = None,  # noqa: FBT001 (litellm's names and order)
        *_: object,
        **__: object,  # a session of unknown origin, HTTP/2, and what later versions add
    ) -> _Transport:
        return _build_transport(make, ssl_verify is not False if ssl_context is None else ssl_context)

    def create_client(handler: _Handler) -> httpx.Client:
        tls = handlers.get_ssl_configuration(handler.ssl_verify)
        return _guard(built(handler), partial(_build_transport, make, tls))

    handlers.AsyncHTTPHandler.create_async_transport = staticmethod(create_async_transport)
    handlers.HTTPHandler.create_client = create_client


def _build_transport(make: _Transports, tls: Tls) -> _Transport:
    """Build a transport like litellm's, with our connections and our limits."""

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=tls, limit=0, ttl_dns_cache=30, socket_factory=open_checked_socket)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    transport = make(client=session, ssl_verify=None if tls is True else tls)
    transport.handle_async_request = bound_exchange(transport.handle_async_request)
    return transport


def _guard(client: httpx.Client, make: Callable[[], _Transport]) -> httpx.Client:
    """Put every transport of the client behind ours, including those of proxies."""
    inside = cast("_ClientInternals", client)
    inside._transport = SyncTransport(inside._transport, make)  # pyright: ignore[reportPrivateUsage]
    for pattern, inner in inside._mounts.items():  # pyright: ignore[reportPrivateUsage]
        inside._mounts[pattern] = inner and SyncTransport(inner, make)  # pyright: ignore[reportPrivateUsage]
    return client
