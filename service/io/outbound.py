"""Asking an HTTP service that somebody else named: only a host that the settings allow, at an address that was looked at.

The name is resolved once, every address it has is checked, and the connection goes to a checked address: a name that
resolves otherwise a moment later leads nowhere else. Redirects are not followed, proxies of the environment not used, the
reply is bounded in size and the whole exchange in time, however slowly the bytes drip.
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
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

from service.core.values import shown
from service.errors import CallgradeError, InputError
from service.io.addresses import reachable

P = ParamSpec("P")
T = TypeVar("T")

Resolve = Callable[[str, int], Iterable[str]]
"""The addresses of a host, as text. Raises OSError where it has none."""

AT_ONCE = 16
"""Exchanges under way at the same time; more wait for their turn."""

_PORTS = {"http": 80, "https": 443}


class NoAnswerError(CallgradeError):
    """Nobody answered, or not in time. The text says why."""

    retryable = True


class AddressError(NoAnswerError):
    """The name has no address, or one that may not be connected to. No connection was made."""

    retryable = False


class Target(NamedTuple):
    """A URL that was let in. `authority` is what the Host header says."""

    host: str
    port: int
    path: str
    tls: bool
    authority: str


class Answer(NamedTuple):
    """What came back. `body` is empty unless the status is 200; a longer one ends one byte after the bound."""

    status: int
    body: bytes

    @property
    def told(self) -> str:
        """The status, for people."""
        redirected = ", and redirects are not followed" if 300 <= self.status < 400 else ""
        return f"answered {self.status}{redirected}"


def system_resolve(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver gives."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Outbound:
    """Exchanges with `hosts`, given as host (with its scheme's own port) or host:port.

    `timeout` is in seconds and counts from the look-up of the name to the last byte of the reply. `max_bytes` bounds the
    body of a reply; with 0 none is read.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        allow_private: bool,
        timeout: float,
        max_bytes: int,
        resolve: Resolve = system_resolve,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._hosts = frozenset(hosts)
        self._allow_private = allow_private
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._make_tls = tls
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="outbound")
        self._resolving = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="outbound-name")

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._make_tls()

    def admit(self, url: str, *, place: str) -> Target:
        """The target of a URL; InputError at `place` for one that is not allowed."""
        try:
            target = _target(url)
        except ValueError as error:
            raise InputError.at(place, str(error)) from None
        bare = f"[{target.host}]" if ":" in target.host else target.host
        usual = target.port == _PORTS["https" if target.tls else "http"]
        if f"{bare}:{target.port}" in self._hosts or (usual and bare in self._hosts):
            return target
        raise InputError.at(place, f"{target.authority} is not among the hosts that are allowed here")

    async def aside(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """What `work`, which holds exchanges, gives: in a thread, of which there are AT_ONCE."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **more))

    def exchange(self, target: Target, data: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a POST of JSON, whatever its status; `headers` are added to ours.

        Raises NoAnswerError where none came, AddressError where no connection may be made.
        """
        deadline = monotonic() + self._timeout
        try:
            return self._received(target, data, _HEADERS | dict(headers or {}), deadline)
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswerError(self._why(error, deadline)) from None

    def _why(self, error: Exception, deadline: float) -> str:
        if monotonic() >= deadline or isinstance(error, TimeoutError):
            return f"not within {self._timeout:g} seconds"
        return shown(f"{type(error).__name__}: {error}", 200)

    def _received(self, target: Target, data: bytes, headers: Mapping[str, str], deadline: float) -> Answer:
        addresses = self._checked(target, deadline)
        with _connected(addresses, target.port, deadline) as plain, _cut_at(plain, deadline):
            if not target.tls:
                return self._posted(plain, target, data, headers, deadline)
            with self._tls.wrap_socket(plain, server_hostname=target.host) as wrapped:
                return self._posted(wrapped, target, data, headers, deadline)

    def _checked(self, target: Target, deadline: float) -> list[str]:
        """The addresses of the target. One that must not be reached rules out all: the answer is not to be trusted."""
        looking = self._resolving.submit(lambda: list(dict.fromkeys(self._resolve(target.host, target.port))))
        addresses = looking.result(max(0.0, deadline - monotonic()))
        for address in addresses:
            if not reachable(address, allow_private=self._allow_private):
                raise AddressError(f"{target.host} stands at {address}, which may not be connected to")
        if not addresses:
            raise AddressError(f"{target.host} has no address")
        return addresses

    def _posted(
        self, sock: socket.socket, target: Target, data: bytes, headers: Mapping[str, str], deadline: float
    ) -> Answer:
        connection = HTTPConnection(target.host, target.port)
        connection.sock = sock
        connection.auto_open = 0  # it must not connect by itself
        connection.request("POST", target.path, data, {"Host": target.authority, **headers})
        with connection.getresponse() as response:
            _refuse_late(deadline)  # cut off in the middle, a head looks like a whole one
            if response.status != 200 or not self._max_bytes:
                return Answer(response.status, b"")
            body = response.read(self._max_bytes + 1)
        if len(body) <= self._max_bytes:
            _refuse_late(deadline)  # likewise a body
        return Answer(response.status, body)


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


def _target(url: str) -> Target:
    """ValueError for a URL that is none, or of a kind we never ask."""
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
def _connected(addresses: Iterable[str], port: int, deadline: float) -> Generator[socket.socket]:
    """A connection to the first address that takes one."""
    refusal: OSError = TimeoutError()
    for address in addresses:
        try:
            sock = socket.create_connection((address, port), max(0.001, deadline - monotonic()))
        except OSError as error:
            refusal = error
            continue
        with sock:
            yield sock
        return
    raise refusal


@contextmanager
def _cut_at(sock: socket.socket, deadline: float) -> Generator[None]:
    """Ends the connection at the deadline: a timeout of the socket alone starts anew with each byte that drips in."""
    twin = sock.dup()  # stays ours when TLS takes the socket over
    timer = threading.Timer(max(0.0, deadline - monotonic()), _cut, [twin])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # so that the timer never sees the number of a closed file
        twin.close()


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
