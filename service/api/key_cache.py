"""Whose key a request carries, remembered for a few seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from time import monotonic
from typing import Protocol, TypeVar

from starlette.types import Scope as AsgiScope

from service.asking.single_flight import SingleFlight
from service.logs.quiet import limit_rate
from service.store.access.keys import USE_S, Caller

LOG = logging.getLogger("callgrade.keys")
limit_rate(LOG.name)

T = TypeVar("T")

FRESH_S = 5.0
"""Seconds before the store is asked again; a revoked key may work that long."""

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
        self._lookups: SingleFlight[Caller | None] = SingleFlight()
        self._used: dict[str, float] = {}
        self._recorder = ThreadPoolExecutor(1, thread_name_prefix="uses")
        self._any = False
        self._checked_at = float("-inf")

    async def any_key(self) -> bool:
        """Whether there is a key. If there was none, look again after `FRESH_S` seconds."""
        if not self._any and self._now() - self._checked_at >= FRESH_S:
            self._any = await asyncio.to_thread(self._keys.any_key)
            self._checked_at = self._now()
        return self._any

    async def authenticate(self, key: str) -> Caller | None:
        """Find whose key this is; None for an invalid one. (Nobody guesses 256 bits, so wrong keys are not counted.)"""
        digest = sha256(key.encode()).hexdigest()
        known = self._known.get(digest)
        if known is not None and self._now() - known.at < FRESH_S:
            return known.caller
        found, _ = await self._lookups.run_once(digest, lambda: self._look_up(key, digest))
        return found

    def forget(self, key: str) -> None:
        """Ask the store about this key the next time."""
        self._known.pop(sha256(key.encode()).hexdigest(), None)

    async def _look_up(self, key: str, digest: str) -> Caller | None:
        at = self._now()
        caller = await asyncio.to_thread(self._keys.authenticate, key)
        _put_last(self._known, digest, None if caller is None else _CachedCaller(caller, at))
        if caller is not None:
            self._note_use(caller.key_id)
        return caller

    def _note_use(self, key_id: str) -> None:
        """Record the use of a key now and then: no request waits for it, and none fails if it fails."""
        if self._now() - self._used.get(key_id, float("-inf")) >= USE_S:
            _put_last(self._used, key_id, self._now())
            self._recorder.submit(self._record_use, key_id)

    def _record_use(self, key_id: str) -> None:
        try:
            self._keys.note_use(key_id)
        except Exception as error:  # noqa: BLE001 (no failure here may stop a request)
            LOG.warning("the use of a key could not be recorded", extra={"fields": {"why": type(error).__name__}})


def _put_last(entries: dict[str, T], name: str, value: T | None) -> None:
    """Put a value at the end, or nothing in its place; the first goes if there are too many."""
    entries.pop(name, None)
    if value is not None:
        entries[name] = value
    if len(entries) > MAX_KEYS:
        del entries[next(iter(entries))]


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
