"""Limits of a provider that hold over several processes: what one of them learns, and how many requests are under way.

It is kept in Redis, by the server's own time. A call costs two questions, one before it and one after it; while all places
are taken, a process asks again every POLL seconds and whenever a request of its own ends, for all its callers together. A
Redis that is lost, refuses or hangs costs its patience once; then each process keeps to its own limits until it is back.
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
from service.logs.redaction import name_error_kind

LOG = logging.getLogger("callgrade.limits")

PREFIX = "callgrade:limits:1:"
"""What our keys begin with; the number is that of their form. The cache's keys begin otherwise: emptying it leaves these."""

LEASE = 10.0
"""Seconds after which the places of a process that died are free."""

RENEWAL = 3.0
"""Seconds between two renewals of the places that a process has."""

POLL = 0.05
"""Seconds between two questions whether a place is free."""

QUIET = 60.0
"""Seconds at least between two words in the log about a Redis that comes and goes."""

T = TypeVar("T")


class Admission(NamedTuple):
    """Leave to make one request. `lease` is the place that it has, empty where nobody could be asked for one."""

    lease: str
    probe: bool


class Halt(NamedTuple):
    """No request may go out for `seconds`, for what `why` says; `full`: until a place is free."""

    kind: Literal["closed", "open", "pause", "full"]
    seconds: float
    why: JudgeError


class GateNews(NamedTuple):
    """What became of a request, as far as others should know. `open`: the breaker has opened, or its probe failed."""

    kind: Literal["answered", "pause", "closed", "open", "abandoned", "nothing"]
    seconds: float = 0.0
    why: JudgeError | None = None


class SharedGate(Protocol):
    """What all processes know of one provider and account. Nothing of it raises, CancelledError apart."""

    async def enter(self) -> Admission | Halt:
        """Leave for one request, which waits for a place as long as it takes, or why there is none."""
        ...

    async def leave(self, admission: Admission, news: GateNews) -> None:
        """The request is over."""
        ...


class _Script(Protocol):
    def __call__(self, keys: Iterable[str], args: Iterable[str | float]) -> Awaitable[object]: ...


class _LimitsRedis(Protocol):
    """What is used of redis.asyncio.Redis, whose types leave much open."""

    def register_script(self, script: str) -> _Script: ...
    def aclose(self) -> Awaitable[None]: ...


class SharedLimits:
    """The limits in one Redis. One for a process, in one event loop; connects to nothing until it is used.

    `most`: requests under way at once at one provider, over all processes. Each question takes `patience` seconds at most;
    after a failure none is asked for `rest` seconds. `now` stands for the server's time, `sleep` for what passes between
    renewals, and `clock` for the time of the rest: for tests. Raises ValueError for a URL that redis-py does not take.
    """

    def __init__(  # noqa: PLR0913 (the last three are for tests)
        self,
        url: str,
        *,
        most: int,
        prefix: str = PREFIX,
        patience: float = 0.25,
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

    def at(self, provider: str, account: str) -> RedisGate:
        """What is shared by all who ask one provider with one account."""
        gate = RedisGate(self, f"{self._prefix}{provider}:{account}:")
        self._gates.append(gate)
        return gate

    async def run(self, script: str, keys: Iterable[str], *args: str | float) -> object:
        """The reply to a script. Raises whatever the client does."""
        now = "" if self._now is None else self._now()
        return await self._scripts[script](keys, [now, *args])

    async def try_work(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """What the work gives; None where it fails, takes too long, or is not tried at all."""
        if self._clock() < self._resting_until:
            return None
        if self._lost:  # one finds out whether it is back; the others need not wait for that
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
            self._quiet_until = self._clock() + QUIET
            told = "%s does not share limits (%s): until it does, each process keeps to its own"
            LOG.warning(told, self._place, name_error_kind(error))
        self._lost = True

    async def close(self) -> None:
        """Ends the connections. Whoever asks afterwards keeps to their own limits."""
        for gate in self._gates:
            gate.stop()
        self._resting_until = float("inf")
        with suppress(Exception):
            async with asyncio.timeout(self._patience):
                await self._client.aclose()


class RedisGate:
    """What is shared about one provider and account: see `limits_lua` for the keys."""

    def __init__(self, limits: SharedLimits, prefix: str) -> None:
        self._limits = limits
        self._keys = [prefix + name for name in ("state", "leases", "waiting")]
        self._held: set[str] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # who has it asks, for all who wait
        self._ended = asyncio.Event()

    async def enter(self) -> Admission | Halt:
        """Leave for one request, or why there is none."""
        if not self._turn.locked():
            found = await self._ask()
            if not _is_full(found):
                return found
        async with self._turn:
            while True:
                self._ended.clear()
                found = await self._ask()
                if not _is_full(found):
                    return found
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL):
                        await self._ended.wait()

    async def _ask(self) -> Admission | Halt:
        lease = token_hex(8)

        async def ask() -> Admission | Halt:
            limits = self._limits
            return _parse_reply(await limits.run(ENTER, self._keys, lease, limits.process, limits.most, LEASE), lease)

        found = await self._limits.try_work(ask) or Admission("", probe=False)
        if isinstance(found, Admission) and found.lease:
            self._hold(found.lease)
        return found

    async def leave(self, admission: Admission, news: GateNews) -> None:
        """The request is over, and its place free."""
        self._held.discard(admission.lease)
        if not self._held:
            self.stop()
        args = (admission.lease, news.kind, int(admission.probe), news.seconds, _format_error(news.why))
        await self._limits.try_work(lambda: self._limits.run(LEAVE, self._keys, *args))
        self._ended.set()

    def _hold(self, lease: str) -> None:
        self._held.add(lease)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await self._limits.sleep(RENEWAL)
            held = tuple(self._held)
            await self._limits.try_work(lambda held=held: self._limits.run(RENEW, self._keys, LEASE, *held))

    def stop(self) -> None:
        """Renews no longer. Places that are still taken are free when their time is over."""
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None


def _is_full(found: Admission | Halt) -> bool:
    return isinstance(found, Halt) and found.kind == "full"


def _parse_reply(reply: object, lease: str) -> Admission | Halt:
    kind, seconds, why = [part.decode() for part in cast("list[bytes]", reply)]
    if kind in ("go", "probe"):
        return Admission(lease, probe=kind == "probe")
    return Halt(cast("Literal['closed', 'open', 'pause', 'full']", kind), float(seconds), _parse_error(why))


def _format_error(error: JudgeError | None) -> str:
    return f"{error.cause} {error.reason}"[:500] if error else ""


def _parse_error(text: str) -> JudgeError:
    cause, _, reason = text.partition(" ")
    known = cast("FaultCause", cause if cause in get_args(FaultCause) else "provider_error")
    return JudgeError(known, reason or "another process was told so")
