"""Call an HTTP service that a user named: only on a host that the settings allow, and at a checked address.

The name is resolved once, each of its addresses is checked, and the connection goes to a checked address: a name that
resolves differently a moment later leads nowhere else. Redirects are not followed, proxies from the environment are not used,
the size of the reply and the time of the whole exchange are limited, however slowly the bytes arrive.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from time import monotonic
from typing import NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

from service.core.json.values import format_value
from service.errors import CallgradeError, InputError
from service.outbound.addresses import is_reachable
from service.outbound.timeouts import Timeouts

P = ParamSpec("P")
T = TypeVar("T")

Resolver = Callable[[str, int], Iterable[str]]
"""Returns the addresses of a host, as text. Raises OSError if it has none."""

MAX_EXCHANGES = 16
"""Most exchanges under way at once; more wait for their turn."""

_PORTS = {"http": 80, "https": 443}


class NoAnswerError(CallgradeError):
    """Nobody answered, or not in time. The text says why."""

    retryable = True


class AddressError(NoAnswerError):
    """The name has no address, or one that may not be connected to. No connection was made."""

    retryable = False


class Target(NamedTuple):
    """A URL that was admitted. `authority` is the Host header."""

    host: str
    port: int
    path: str
    tls: bool
    authority: str


class HttpAnswer(NamedTuple):
    """The answer. `body` is empty unless the status is 200; an oversized one ends one byte after the limit."""

    status: int
    body: bytes

    @property
    def status_text(self) -> str:
        """Describe the status for people."""
        redirected = ", and redirects are not followed" if 300 <= self.status < 400 else ""
        return f"answered {self.status}{redirected}"


def resolve_host(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Outbound:
    """Exchanges with `hosts`, given as host (with its scheme's default port) or host:port.

    `times` count from the resolution of the name. `max_bytes` limits the body of a reply; with 0 none is read.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        allow_private: bool,
        times: Timeouts,
        max_bytes: int,
        resolve: Resolver = resolve_host,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._hosts = frozenset(hosts)
        self._allow_private = allow_private
        self._times = times
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._make_tls = tls
        self._pool = ThreadPoolExecutor(MAX_EXCHANGES, thread_name_prefix="outbound")
        self._resolving = ThreadPoolExecutor(MAX_EXCHANGES, thread_name_prefix="outbound-name")

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._make_tls()

    def admit(self, url: str, *, place: str) -> Target:
        """Return the target of a URL. Raises InputError at `place` if it is not allowed."""
        try:
            target = _parse_target(url)
        except ValueError as error:
            raise InputError.at(place, str(error)) from None
        bare = f"[{target.host}]" if ":" in target.host else target.host
        usual = target.port == _PORTS["https" if target.tls else "http"]
        if f"{bare}:{target.port}" in self._hosts or (usual and bare in self._hosts):
            return target
        raise InputError.at(place, f"{target.authority} is not among the hosts that are allowed here")

    async def run_aside(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Run `work`, which makes exchanges, in one of MAX_EXCHANGES threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **more))

    def exchange(self, target: Target, data: bytes, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """POST JSON and return the answer, whatever its status; `headers` are added to ours.

        Raises NoAnswerError if there is none, AddressError if no connection may be made.
        """
        until = _Deadlines.now(self._times)
        try:
            return self._exchange(target, data, _HEADERS | dict(headers or {}), until)
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswerError(self._explain_error(error, until)) from None

    def _explain_error(self, error: Exception, until: _Deadlines) -> str:
        now, times = monotonic(), self._times
        if now >= until.total:
            return f"not within {times.total:g} seconds"
        if isinstance(error, _NoConnectionError):
            return f"no connection within {times.connect:g} seconds"
        if now >= until.first_byte or isinstance(error, TimeoutError):
            return f"no answer began within {times.first_byte:g} seconds"
        return format_value(f"{type(error).__name__}: {error}", 200)

    def _exchange(self, target: Target, data: bytes, headers: Mapping[str, str], until: _Deadlines) -> HttpAnswer:
        addresses = self._look_up(target, until.connect)
        with (
            _connect(addresses, target.port, until.connect) as plain,
            _duplicate(plain) as twin,
            _cut_at(twin, until.total),
            self._wrap_tls(plain, twin, target, until.connect) as sock,
        ):
            with _cut_at(twin, until.first_byte):
                response = _post(sock, target, data, headers)
            with response:
                _refuse_late(until.first_byte)  # a head that was cut off looks like a complete one
                return self._read(response, until.total)

    @contextmanager
    def _wrap_tls(
        self, plain: socket.socket, twin: socket.socket, target: Target, deadline: float
    ) -> Generator[socket.socket]:
        """Wrap the connection in TLS if the target has it."""
        if not target.tls:
            yield plain
            return
        try:
            with _cut_at(twin, deadline):
                wrapped = self._tls.wrap_socket(plain, server_hostname=target.host)
        except OSError:
            if monotonic() >= deadline:
                raise _NoConnectionError from None
            raise
        with wrapped:
            if monotonic() >= deadline:  # cut off before it began, the handshake is left out without a word
                raise _NoConnectionError
            yield wrapped

    def _read(self, response: HTTPResponse, deadline: float) -> HttpAnswer:
        if response.status != 200 or not self._max_bytes:
            return HttpAnswer(response.status, b"")
        body = response.read(self._max_bytes + 1)
        if len(body) <= self._max_bytes:
            _refuse_late(deadline)  # so does a body
        return HttpAnswer(response.status, body)

    def _look_up(self, target: Target, deadline: float) -> list[str]:
        """Resolve the target. One forbidden address rules out all: the name is not to be trusted."""
        looking = self._resolving.submit(lambda: list(dict.fromkeys(self._resolve(target.host, target.port))))
        try:
            addresses = looking.result(max(0.0, deadline - monotonic()))
        except TimeoutError:
            raise _NoConnectionError from None
        for address in addresses:
            if not is_reachable(address, allow_private=self._allow_private):
                raise AddressError(f"{target.host} resolves to {address}, which may not be connected to")
        if not addresses:
            raise AddressError(f"{target.host} has no address")
        return addresses


class _NoConnectionError(TimeoutError):
    """No connection in time."""


class _Deadlines(NamedTuple):
    """The deadlines of an exchange, by the monotonic clock."""

    connect: float
    first_byte: float
    total: float

    @classmethod
    def now(cls, times: Timeouts) -> _Deadlines:
        start = monotonic()
        return cls(*[start + seconds for seconds in times])


def _post(sock: socket.socket, target: Target, data: bytes, headers: Mapping[str, str]) -> HTTPResponse:
    connection = HTTPConnection(target.host, target.port)
    connection.sock = sock
    connection.auto_open = 0  # it must not connect by itself
    connection.request("POST", target.path, data, {"Host": target.authority, **headers})
    return connection.getresponse()


_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "callgrade",
}


def _refuse_late(deadline: float) -> None:
    if monotonic() >= deadline:
        raise TimeoutError


def _parse_target(url: str) -> Target:
    """Parse a URL. Raises ValueError if it is malformed, or of a kind that we never call."""
    if not url.isascii() or not url.isprintable() or any(char in url for char in ' \\"<>^`{|}#'):
        raise ValueError("expected a URL of printable ASCII without a fragment")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError as error:
        raise ValueError(f"not a URL: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise ValueError("expected http://host/path or https://host/path")
    if "@" in parts.netloc:
        raise ValueError("expected a URL without a user or a password")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(host, port or _PORTS[parts.scheme], path, parts.scheme == "https", parts.netloc.lower())


@contextmanager
def _connect(addresses: Iterable[str], port: int, deadline: float) -> Generator[socket.socket]:
    """Connect to the first address that accepts."""
    refusal: OSError = _NoConnectionError()
    for address in addresses:
        try:
            sock = socket.create_connection((address, port), max(0.001, deadline - monotonic()))
        except TimeoutError:
            refusal = _NoConnectionError()
            continue
        except OSError as error:
            refusal = error
            continue
        with sock:
            sock.settimeout(None)  # a timer cuts it off
            yield sock
        return
    raise refusal


@contextmanager
def _duplicate(sock: socket.socket) -> Generator[socket.socket]:
    """Duplicate the connection, so that we keep a handle when TLS takes over the socket."""
    with sock.dup() as twin:
        yield twin


@contextmanager
def _cut_at(twin: socket.socket, deadline: float) -> Generator[None]:
    """End the connection at the deadline: a socket timeout alone starts anew with each byte that arrives."""
    timer = threading.Timer(max(0.0, deadline - monotonic()), _cut, [twin])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # so that the timer never touches the number of a closed file


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
