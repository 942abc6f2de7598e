"""Whose key a request carries, remembered for a few seconds."""

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

FRESH_S = 5.0
"""Seconds before the store is asked again; a revoked key may work that long."""

WRONG_KEYS_PER_MINUTE = 20
"""Wrong keys from one address before its keys are no longer looked up."""

MAX_KEYS = 10_000
"""Most keys that are remembered."""


class KeyStore(Protocol):
    """The store of keys or sessions."""

    def any_key(self) -> bool:
        """Whether a key was ever made."""
        ...

    def authenticate(self, text: str) -> Caller | None:
        """Find whose key this is; None for an invalid one."""
        ...

    def note_use(self, key_id: str) -> None:
        """Record that a key was used."""
        ...


@dataclass(frozen=True, slots=True)
class KeyThrottle:
    """Too many wrong keys came from one address; it must wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class _CachedCaller:
    caller: Caller
    at: float


class KeyCache:
    """Finds whose key a request carries, in one process and event loop. The store is asked in threads.

    A key is remembered by its sha256 for `FRESH_S` seconds; that any key exists, for ever. Raises what the store
    raises.
    """

    def __init__(self, keys: KeyStore, *, now: Callable[[], float] = monotonic) -> None:
        self._keys = keys
        self._now = now
        self._known: dict[str, _CachedCaller] = {}
        self._lookups: SingleFlight[Caller | KeyThrottle | None] = SingleFlight()
        self._wrong = Buckets(WRONG_KEYS_PER_MINUTE, now=now)
        self._uses = KeyUseRecorder(keys.note_use, now=now)
        self._any = False
        self._checked_at = float("-inf")

    async def any_key(self) -> bool:
        """Whether there is a key. If there was none, look again after `FRESH_S` seconds."""
        if not self._any and self._now() - self._checked_at >= FRESH_S:
            self._any = await asyncio.to_thread(self._keys.any_key)
            self._checked_at = self._now()
        return self._any

    async def authenticate(self, key: str, peer: str) -> Caller | KeyThrottle | None:
        """Find whose key this is; None for an invalid one; KeyThrottle if `peer` has sent too many invalid keys.

        A valid key always works: what others send from the same address, say that of a proxy, locks nobody out. (Nobody
        guesses 256 bits; the limit keeps a misconfigured caller from flooding the logs and the database.)
        """
        digest = sha256(key.encode()).hexdigest()
        known = self._known.get(digest)
        if known is not None and self._now() - known.at < FRESH_S:
            return known.caller
        found, _ = await self._lookups.run_once(digest, lambda: self._look_up(key, digest, peer))
        return found

    def forget(self, key: str) -> None:
        """Ask the store about this key the next time."""
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
        if len(self._known) > MAX_KEYS:
            del self._known[next(iter(self._known))]


def read_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Read the key of a request; None if it has none, "" if it has several that differ."""
    keys: set[str] = set()
    for name, value in headers:
        if name == b"x-api-key":
            keys.add(value.decode("latin-1").strip())
        elif name == b"authorization":
            scheme, _, key = value.decode("latin-1").strip().partition(" ")
            if scheme.lower() == "bearer":
                keys.add(key.strip())
    if not keys:
        return None
    return keys.pop() if len(keys) == 1 else ""


def find_peer(scope: AsgiScope) -> str:
    """Return the address that a request comes from, as `mask_address` gives it."""
    return mask_address((scope.get("client") or ("", 0))[0])


@lru_cache(maxsize=4096)
def mask_address(host: str) -> str:
    """Return an address, for IPv6 its /64 network: one sender owns all addresses of a network."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)
