"""Provider limits that span several processes: what one of them learns, and how many requests are under way.

They live in Redis, by the server's clock. A call costs two queries, one before it and one after it; while all places are
taken, a process asks again every POLL_S seconds and whenever a request of its own ends, once for all its callers. A Redis that
is lost, refuses or hangs costs its patience once; then each process keeps its own limits until Redis is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from secrets import token_hex
from time import monotonic
from typing import Literal, NamedTuple, Protocol, TypeVar, cast, get_args

from service.asking.cache.shared import build_client, describe_place
from service.asking.limits.lua import ENTER, LEAVE, RENEW
from service.errors import FaultCause, JudgeError
from service.logs.quiet import name_error_kind

LOG = logging.getLogger("callgrade.limits")

PREFIX = "callgrade:limits:1:"
"""The prefix of our keys; the number is their version. The cache's keys have another prefix: emptying it leaves these alone."""

LEASE_S = 10.0
"""Seconds after which the places of a dead process are free."""

RENEWAL_INTERVAL_S = 3.0
"""Seconds between renewals of the places that a process holds."""

POLL_S = 0.05
"""Seconds between queries for a free place."""

LOG_INTERVAL_S = 60.0
"""Fewest seconds between log lines about a Redis that comes and goes."""

T = TypeVar("T")


class Halt(NamedTuple):
    """No request may go out for `seconds`, because of `why`; `full`: until a place is free."""

    kind: Literal["closed", "pause", "full"]
    seconds: float
    why: JudgeError


class _Script(Protocol):
    def __call__(self, keys: Iterable[str], args: Iterable[str | float]) -> Awaitable[object]: ...


class _LimitsRedis(Protocol):
    """The part of redis.asyncio.Redis that we use; its own types leave much open."""

    def register_script(self, script: str) -> _Script: ...
    def aclose(self) -> Awaitable[None]: ...


class SharedLimits:
    """The limits in one Redis. One per process, in one event loop; connects to nothing until it is used.

    `most`: requests under way at once to one model, over all processes. Each query takes `patience` seconds at most; after a
    failure none is made for `rest` seconds. In tests, `now` replaces the server's time, `sleep` the wait between renewals, and
    `clock` the time of the rest. Raises ValueError for a URL that redis-py does not accept.
    """

    def __init__(  # noqa: PLR0913 (the last three are for tests)
        self,
        url: str,
        *,
        most: int,
        prefix: str = PREFIX,
        patience: float = 1.0,
        rest: float = 1.0,
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.most = most
        self.process = token_hex(8)
        self.sleep = sleep
        self._place = describe_place(url)
        self._prefix = prefix
        self._patience = patience
        self._rest = rest
        self._now = now
        self._clock = clock
        self._client = cast("_LimitsRedis", build_client(url))
        self._scripts = {text: self._client.register_script(text) for text in (ENTER, LEAVE, RENEW)}
        self._gates: list[RedisGate] = []
        self._lost = False
        self._resting_until = float("-inf")
        self._quiet_until = float("-inf")

    def build_gate(self, model: str, account: str) -> RedisGate:
        """Return the gate shared by all who use one model with one account."""
        gate = RedisGate(self, f"{self._prefix}{model}:{account}:")
        self._gates.append(gate)
        return gate

    async def run(self, script: str, keys: Iterable[str], *args: str | float) -> object:
        """Run a script and return its reply. Raises whatever the client raises."""
        now = "" if self._now is None else self._now()
        return await self._scripts[script](keys, [now, *args])

    async def try_work(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Run the work and return its result; None if it fails, takes too long, or is not tried at all."""
        if self._clock() < self._resting_until:
            return None
        if self._lost:  # one caller finds out whether it is back; the others need not wait for that
            self._resting_until = self._clock() + self._rest
        try:
            async with asyncio.timeout(self._patience):
                found = await work()
        except Exception as error:  # noqa: BLE001 (no Redis stops a call)
            self._note_failure(error)
            return None
        self._lost, self._resting_until = False, float("-inf")
        return found

    def _note_failure(self, error: Exception) -> None:
        self._resting_until = self._clock() + self._rest
        if not self._lost and self._clock() >= self._quiet_until:
            self._quiet_until = self._clock() + LOG_INTERVAL_S
            message = "%s does not share limits (%s): until it does, each process keeps to its own"
            LOG.warning(message, self._place, name_error_kind(error))
        self._lost = True

    async def close(self) -> None:
        """Close the connections. Afterwards every caller keeps its own limits."""
        for gate in self._gates:
            gate.stop()
        self._resting_until = float("inf")
        with suppress(Exception):
            async with asyncio.timeout(self._patience):
                await self._client.aclose()


class RedisGate:
    """What processes share about one model and account; `limits.lua` documents the keys. `enter` and `leave` raise no fault."""

    def __init__(self, limits: SharedLimits, prefix: str) -> None:
        self._limits = limits
        self._leases: set[str] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._keys = [prefix + name for name in ("state", "leases", "waiting")]
        self._turn = asyncio.Lock()  # whoever holds it asks, on behalf of all who wait
        self._ended = asyncio.Event()

    async def enter(self) -> str | Halt:
        """Return the lease of a place for one request, empty if Redis cannot be asked for one; or why none may go out."""
        if not self._turn.locked():
            answer = await self._ask()
            if not _is_full(answer):
                return answer
        async with self._turn:
            while True:
                self._ended.clear()
                answer = await self._ask()
                if not _is_full(answer):
                    return answer
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._ended.wait()

    async def _ask(self) -> str | Halt:
        lease, limits = token_hex(8), self._limits

        async def ask() -> str | Halt:
            args = (lease, limits.process, limits.most, LEASE_S)
            return _parse_reply(await limits.run(ENTER, self._keys, *args)) or lease

        answer = await limits.try_work(ask) or ""
        if answer == lease:
            self._hold(lease)
        return answer

    async def leave(self, lease: str, news: Halt | None) -> None:
        """Free the place of a request that is over; `news`: what it has shown that others should know."""
        self._leases.discard(lease)
        if not self._leases:
            self.stop()
        told = ("", 0.0, "") if news is None else (news.kind, news.seconds, _format_error(news.why))
        await self._limits.try_work(lambda: self._limits.run(LEAVE, self._keys, lease, *told))
        self._ended.set()

    def _hold(self, lease: str) -> None:
        self._leases.add(lease)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await self._limits.sleep(RENEWAL_INTERVAL_S)
            leases = tuple(self._leases)
            await self._limits.try_work(lambda leases=leases: self._limits.run(RENEW, self._keys, LEASE_S, *leases))

    def stop(self) -> None:
        """Stop renewing. Places that are still held become free when their leases end."""
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None


def _is_full(answer: str | Halt) -> bool:
    return isinstance(answer, Halt) and answer.kind == "full"


def _parse_reply(reply: object) -> Halt | None:
    kind, seconds, why = [part.decode() for part in cast("list[bytes]", reply)]
    if kind == "go":
        return None
    return Halt(cast("Literal['closed', 'pause', 'full']", kind), float(seconds), _parse_error(why))


def _format_error(error: JudgeError) -> str:
    return f"{error.cause} {error.reason}"[:500]


def _parse_error(text: str) -> JudgeError:
    cause, _, reason = text.partition(" ")
    known = cast("FaultCause", cause if cause in get_args(FaultCause) else "provider_error")
    return JudgeError(known, reason or "another process reported it")
