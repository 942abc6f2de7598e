"""Call an HTTP service that a user named: only on a host that the settings allow, and at a checked address.

The name is resolved once, each of its addresses is checked, and the connection goes to a checked address: a name that
resolves differently a moment later leads nowhere else. Redirects are not followed, proxies from the environment are not used,
the size of the reply and the time of the whole exchange are limited, however slowly the bytes arrive.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from service.core.json.values import format_value
from service.errors import CallgradeError, InputError
from service.outbound.addresses import is_reachable

if TYPE_CHECKING:  # loaded with the first exchange: whoever only verifies a webhook needs the standard library alone
    import aiohttp

Resolver = Callable[[str, int], Iterable[str]]
"""Returns the addresses of a host, as text. Raises OSError if it has none."""

MAX_LOOK_UPS = 16
"""Most names that are resolved at once; more wait for their turn."""

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
    """The answer. `body` is empty unless the status is 200; an oversized one ends soon after the limit."""

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

    `timeout` in seconds, from the look-up of the name to the last byte. `max_bytes` limits the body of a reply; 0: none is read.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        allow_private: bool,
        timeout: float,
        max_bytes: int,
        resolve: Resolver = resolve_host,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._hosts = frozenset(hosts)
        self._allow_private = allow_private
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._make_tls = tls
        self._resolving = ThreadPoolExecutor(MAX_LOOK_UPS, thread_name_prefix="outbound-name")

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

    async def exchange(self, target: Target, data: bytes, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """POST JSON and return the answer, whatever its status; `headers` are added to ours.

        Raises NoAnswerError if there is none, AddressError if no connection may be made.
        """
        import aiohttp  # noqa: PLC0415

        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(target, data, _HEADERS | dict(headers or {}))
        except TimeoutError:
            reason = f"not within {self._timeout:g} seconds"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            cause = getattr(error, "certificate_error", getattr(error, "os_error", error))
            first_line, _, _ = str(getattr(cause, "message", cause)).partition("\n")  # the rest quotes the answer
            reason = format_value(f"{type(cause).__name__}: {first_line}", 200)
        raise NoAnswerError(reason)

    async def _exchange(self, target: Target, data: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """Take the answer of the first address that accepts a connection."""
        import aiohttp  # noqa: PLC0415
        from yarl import URL  # noqa: PLC0415

        addresses = await self._look_up(target)
        connector = aiohttp.TCPConnector(ssl=self._tls if target.tls else True, force_close=True)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, auto_decompress=False) as session:
            for n, address in enumerate(addresses, 1):
                host = f"[{address}]" if ":" in address else address
                url = f"{'https' if target.tls else 'http'}://{host}:{target.port}{target.path}"
                try:
                    async with session.post(
                        URL(url, encoded=True),
                        data=data,
                        headers={"Host": target.authority, **headers},
                        server_hostname=target.host if target.tls else None,
                        allow_redirects=False,
                        timeout=aiohttp.ClientTimeout(),
                    ) as answer:
                        return HttpAnswer(answer.status, await self._read(answer))
                except aiohttp.ClientConnectorError:
                    if n == len(addresses):
                        raise
        raise AddressError(f"{target.host} has no address")

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        if answer.status == 200 and self._max_bytes:
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > self._max_bytes:
                    break
        return bytes(body)

    async def _look_up(self, target: Target) -> list[str]:
        """Resolve the target. One forbidden address rules out all: the name is not to be trusted."""

        def look_up() -> list[str]:
            if target.tls:
                self._tls  # noqa: B018 (made here, where it holds nobody up)
            return list(dict.fromkeys(self._resolve(target.host, target.port)))

        addresses = await asyncio.get_running_loop().run_in_executor(self._resolving, look_up)
        for address in addresses:
            if not is_reachable(address, allow_private=self._allow_private):
                raise AddressError(f"{target.host} resolves to {address}, which may not be connected to")
        return addresses


_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "callgrade",
}


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
