"""The cache that several machines share, in Redis.

A Redis that is lost, refuses or hangs costs the guard's patience once and is a miss; the client's own retries are off, as they
stretch that to seconds. Redis expires rows by its own clock, and bounds their size by its own `maxmemory` and
`maxmemory-policy`: `allkeys-lru`, or another policy that evicts, suits a Redis that holds nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import urlsplit

from service.asking.cache.guard import MAX_SEALED_BYTES, UNREADABLE, GuardedCache

if TYPE_CHECKING:
    from redis.exceptions import ResponseError

PREFIX = "callgrade:1:"
"""The prefix of our keys; the number is the version of the rows' format."""

MAX_CONNECTIONS = 32
"""Most connections of one process; further queries wait for a free one."""


class _CacheRedis(Protocol):
    """The part of redis.asyncio.Redis that we use; its own types leave much open."""

    def getrange(self, key: str, start: int, end: int) -> Awaitable[bytes]: ...
    def set(self, key: str, value: str, *, ex: int) -> Awaitable[object]: ...
    def aclose(self) -> Awaitable[None]: ...


class RedisCache(GuardedCache):
    """A cache in Redis: the rows under one prefix. Use from one event loop.

    `ttl` in seconds, at least 1; each operation takes at most `patience` seconds. Raises ValueError for a URL that redis-py does
    not accept, and connects to nothing until it is used.
    """

    def __init__(
        self,
        url: str,
        *,
        ttl: float,
        prefix: str = PREFIX,
        patience: float = 1.0,
        rest: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        from redis.asyncio import BlockingConnectionPool, Redis  # noqa: PLC0415 (a third of a second that few need)
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.exceptions import ResponseError  # noqa: PLC0415

        parts = urlsplit(url)
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # without its secrets
        super().__init__(place, patience=patience, rest=rest, clock=clock)
        self._ttl = max(1, int(ttl))
        self._prefix = prefix
        self._refusal: type[ResponseError] = ResponseError
        # No timeouts but the guard's: a socket timeout would go through wait_for, which in Python 3.11 can swallow a
        # cancellation. This pool waits for a free connection, where another kind fails at once.
        pool = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=None,
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )
        self._client = cast("_CacheRedis", Redis.from_pool(pool))

    async def read_row(self, key: str) -> str | None:
        """Read a row as it was written. Reads no more than a row of ours can hold, however long the value is."""
        try:
            row = await self._client.getrange(self._prefix + key, 0, MAX_SEALED_BYTES)
            return row.decode() or None
        except (self._refusal, UnicodeDecodeError):  # not a string, or not our text
            return UNREADABLE

    async def write_rows(self, rows: Mapping[str, str]) -> None:
        """Write rows for their time to live."""
        await asyncio.gather(
            *[self._client.set(self._prefix + key, sealed, ex=self._ttl) for key, sealed in rows.items()]
        )

    async def release(self) -> None:
        """Close the connections."""
        await self._client.aclose()
