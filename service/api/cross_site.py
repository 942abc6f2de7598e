"""Loopback is no reason to trust: refuse what a web page of another site makes a browser send to this machine.

A page can have its own name resolve to this machine (DNS rebinding), so the requested host name is checked. It can also
send requests that need no permission, so the origin is checked. No page can change the headers that say both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from ipaddress import ip_address

from starlette.exceptions import HTTPException

OWN_SITES = frozenset({"same-origin", "none"})
"""The `Sec-Fetch-Site` of our own pages, and of an address that somebody typed. Another port is `same-site`."""

AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]{1,5})?")

Headers = Iterable[tuple[bytes, bytes]]


@lru_cache(maxsize=64)  # bounded, because callers write the names
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there. A name other than localhost may be anything.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.com")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_cross_site(headers: Headers, hosts: Collection[str]) -> None:
    """Raise HTTPException 403 if a request names another host than ours, or comes from a page of another origin.

    `hosts`: names of ours besides the loopback's, with or without a port. No browser omits `Host`.
    """
    refuse_host([value.decode("latin-1") for name, value in headers if name == b"host"], hosts)
    refuse_origin(headers)


def refuse_host(authorities: Iterable[str], hosts: Collection[str]) -> None:
    """Raise HTTPException 403 if a request names another host than ours."""
    if not all(is_own(authority, hosts) for authority in authorities):
        detail = "the Host of the request is not a name of this service; CALLGRADE_ALLOWED_HOSTS can make it one"
        raise HTTPException(403, detail)


def refuse_origin(headers: Headers) -> None:
    """Raise HTTPException 403 if a request comes from a page of another origin."""
    values = _read_origin_headers(headers)
    if not all(map(OWN_SITES.__contains__, values[b"sec-fetch-site"])):
        raise HTTPException(403, "the request comes from a page of another site (Sec-Fetch-Site)")
    if not all(_is_same(origin, values[b"host"]) for origin in values[b"origin"]):
        raise HTTPException(403, "the request comes from a page of another origin (Origin)")


def is_own(authority: str, hosts: Collection[str]) -> bool:
    """Whether a host, with or without a port, is of the loopback or one of `hosts`.

    >>> [
    ...     is_own(one, ["tool.lan"])
    ...     for one in ("localhost:8000", "[::1]:80", "a.localhost", "TOOL.lan:1", "evil.example")
    ... ]
    [True, True, True, True, False]
    """
    authority = authority.strip().lower()
    match = AUTHORITY.fullmatch(authority)
    if match is None:
        return False
    host = (match["address"] or match["name"]).removesuffix(".")
    return is_loopback(host) or host.endswith(".localhost") or host in hosts or authority in hosts


def _is_same(origin: str, hosts: list[str]) -> bool:
    """Whether an origin is exactly the host, with its port, that the request names."""
    scheme, _, authority = origin.strip().lower().partition("://")
    return scheme in ("http", "https") and authority in [host.strip().lower() for host in hosts]


def _read_origin_headers(headers: Headers) -> dict[bytes, list[str]]:
    """Read the headers that say where a request comes from and goes to."""
    values_by_header: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"sec-fetch-site": []}
    for name, value in headers:
        if (values := values_by_header.get(name)) is not None:
            values.append(value.decode("latin-1"))
    return values_by_header
