"""Who sends a request: the key it carries, and whose key that is, remembered for a few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from time import monotonic
from typing import Protocol

from starlette.types import Scope as AsgiScope

from service.api.fairness.buckets import Buckets
from service.api.key_use import KeyUseRecorder
from service.asking.single_flight import SingleFlight
from service.store.access.callers import Caller

FRESH = 5.0
"""Seconds for which the store is not asked again: so long a key may work that was revoked."""

WRONG_A_MINUTE = 20
"""Wrong keys from one address, before its keys are not looked at any more."""

MOST = 10_000
"""Keys that are remembered."""


class KeyStore(Protocol):
    """The store of keys."""

    def any_key(self) -> bool:
        """Whether there ever was one."""
        ...

    def authenticate(self, text: str) -> Caller | None:
        """Whose key this is; None for one that is worth nothing."""
        ...

    def note_use(self, key_id: str) -> None:
        """Keeps that a key is used."""
        ...


@dataclass(frozen=True, slots=True)
class KeyThrottle:
    """Too many wrong keys came from there."""

    seconds: float


@dataclass(frozen=True, slots=True)
class _CachedCaller:
    caller: Caller
    at: float


class KeyCache:
    """Whose keys those of requests are, in one process and event loop. The store is asked in threads.

    A key is remembered by its sha256 for `FRESH` seconds; that a key exists, for ever. Raises what the store raises.
    """

    def __init__(self, keys: KeyStore, *, now: Callable[[], float] = monotonic) -> None:
        self._keys = keys
        self._now = now
        self._known: dict[str, _CachedCaller] = {}
        self._flights: SingleFlight[Caller | KeyThrottle | None] = SingleFlight()
        self._wrong = Buckets(WRONG_A_MINUTE, now=now)
        self._uses = KeyUseRecorder(keys.note_use, now=now)
        self._any = False
        self._looked = float("-inf")

    async def any_key(self) -> bool:
        """Whether there is a key. Where there was none, it is looked again after `FRESH` seconds."""
        if not self._any and self._now() - self._looked >= FRESH:
            self._any = await asyncio.to_thread(self._keys.any_key)
            self._looked = self._now()
        return self._any

    async def of(self, key: str, peer: str) -> Caller | KeyThrottle | None:
        """Whose key this is; None for one that is worth nothing; Wait where `peer` has sent too many such keys.

        A key that is good is one in any case: what others send from the same address, say that of a proxy, locks nobody out.
        (Nobody guesses 256 bits; the limit keeps logs and the database from being flooded by a caller that is set up wrongly.)
        """
        digest = sha256(key.encode()).hexdigest()
        known = self._known.get(digest)
        if known is not None and self._now() - known.at < FRESH:
            return known.caller
        found, _ = await self._flights.run_once(digest, lambda: self._look_up(key, digest, peer))
        return found

    def forget(self, key: str) -> None:
        """The store is asked about this key the next time."""
        self._known.pop(sha256(key.encode()).hexdigest(), None)

    async def _look_up(self, key: str, digest: str, peer: str) -> Caller | KeyThrottle | None:
        at = self._now()
        caller = await asyncio.to_thread(self._keys.authenticate, key)
        self._remember(digest, caller, at)
        if caller is not None:
            self._uses.note(caller.key_id)
        if caller is None and (seconds := self._wrong.take(peer)):
            return KeyThrottle(seconds)
        return caller

    def _remember(self, digest: str, caller: Caller | None, at: float) -> None:
        self._known.pop(digest, None)
        if caller is not None:
            self._known[digest] = _CachedCaller(caller, at)
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]


def read_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The key that a request carries, None where it carries none, "" where it carries several that differ."""
    given: set[str] = set()
    for name, value in headers:
        if name == b"x-api-key":
            given.add(value.decode("latin-1").strip())
        elif name == b"authorization":
            scheme, _, key = value.decode("latin-1").strip().partition(" ")
            if scheme.lower() == "bearer":
                given.add(key.strip())
    if not given:
        return None
    return given.pop() if len(given) == 1 else ""


def find_peer(asked: AsgiScope) -> str:
    """The address that a request comes from, as `mask_address` has it."""
    return mask_address((asked.get("client") or ("", 0))[0])


@lru_cache(maxsize=4096)
def mask_address(host: str) -> str:
    """An address, and of IPv6 the network: a single sender has all addresses of one."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)
