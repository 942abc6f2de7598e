"""How tenants share a process: places for requests, bytes of bodies in memory and on the disk, and threads.

A tenant, or an address if there are no keys, may hold as much as it leaves free for the others (`Shares`), so a newcomer
always finds room. Who holds the least comes next where tenants wait (`Threads`).
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock
from typing import NamedTuple, TypeVar

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.access import find_payer
from service.api.body import read_declared_length
from service.errors import DiskFullError

T = TypeVar("T")

RETRY_HEADER = {"retry-after": "1"}


class Shares:
    """How much of something each name holds.

    A name may take as much as it leaves free for the others: alone it gets half, and the next one finds room. With n
    greedy names each holds one part of n + 1, and one part stays free. `each`: the most that a name ever holds.

    >>> shares = Shares(4)
    >>> [shares.take("a") for _ in range(3)], shares.take("b"), shares.take("b")
    ([True, True, False], True, False)
    """

    def __init__(self, capacity: int, *, each: int | None = None) -> None:
        self.capacity = capacity
        self.total = 0
        self._each = capacity if each is None else each
        self._held: dict[str, int] = {}

    def count_held(self, name: str) -> int:
        """Return what a name holds."""
        return self._held.get(name, 0)

    def count_room(self, name: str) -> int:
        """Return what a name may take now."""
        held = self._held.get(name, 0)
        return min(self.capacity - self.total, self._each) - held

    def take(self, name: str, amount: int = 1) -> bool:
        """Take the amount and return True, or take nothing and return False."""
        if amount > self.count_room(name):
            return False
        self._held[name] = self._held.get(name, 0) + amount
        self.total += amount
        return True

    def give(self, name: str, amount: int = 1) -> None:
        """Give the amount back."""
        self.total -= amount
        self._held[name] -= amount
        if not self._held[name]:
            del self._held[name]

    def build_full_error(self, name: str, what: str) -> HTTPException:
        """Build a 429 for a name that holds some of it, or a 503 for one that gets nothing because of others."""
        if held := self.count_held(name):
            detail = f"you have {held} {what}, and more would leave too little for others"
            return HTTPException(429, detail, RETRY_HEADER)
        return HTTPException(503, f"over {self.capacity} {what}", RETRY_HEADER)


class Threads:
    """Some threads, shared by name. Work that has begun runs to its end, even if nobody waits for it."""

    def __init__(self, count: int, *, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._places = Shares(count)
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def run(self, name: str, work: Callable[[], T]) -> T:
        """Run `work` once it is the turn of `name`, and return its result."""
        if name in self._waiting or not self._places.take(name):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(name, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it came at the same moment
                    self._give(name)
                raise
        loop = asyncio.get_running_loop()

        def give_back(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits for a turn
                loop.call_soon_threadsafe(self._give, name)

        future = self._pool.submit(work)
        future.add_done_callback(give_back)
        return await asyncio.wrap_future(future)

    def _give(self, name: str) -> None:
        """Give a place back. It goes to the name that holds the least; of several, to the one that waits longest."""
        self._places.give(name)
        while ready := [one for one in self._waiting if self._places.count_room(one) > 0]:
            following = min(ready, key=self._places.count_held)
            queue = self._waiting.pop(following)
            turn = queue.popleft()
            if queue:
                self._waiting[following] = queue
            if not turn.done():
                self._places.take(following)
                turn.set_result(None)


class UploadDisk:
    """The bytes that uploads of one process hold on the temporary disk. Safe to share between threads."""

    def __init__(self, capacity: int) -> None:
        """`capacity`: bytes of all uploads together; less, while less is free on the disk."""
        self._capacity = capacity
        self._shares = Shares(capacity)
        self._folder = tempfile.gettempdir()
        self._lock = Lock()

    @contextmanager
    def hold(self, name: str) -> Generator[Callable[[int], None]]:
        """Open an upload of a tenant; the function that it yields counts bytes before they are written.

        It raises HTTPException 413 for an upload above any tenant's share, 429 where the tenant's uploads together are; and
        DiskFullError where the disk has too little room.
        """
        held, is_open = 0, True

        def take(amount: int) -> None:
            nonlocal held
            with self._lock:
                if not is_open:  # the client left while a thread was writing
                    raise HTTPException(503, "the upload has ended")
                self._take(name, amount, held)
                held += amount

        try:
            yield take
        finally:
            with self._lock:
                is_open = False
                if held:
                    self._shares.give(name, held)

    def _take(self, name: str, amount: int, held: int) -> None:
        share = self._capacity // 2
        if held + amount > share:
            detail = (
                f"the upload passes {share} bytes of the temporary disk, a tenant's share (CALLGRADE_MAX_UPLOADS_BYTES)"
            )
            raise HTTPException(413, detail)
        self._shares.capacity = min(self._capacity, self._shares.total + shutil.disk_usage(self._folder).free)
        if 2 * amount <= self._shares.count_room(name):  # afterwards it still leaves as much as it holds
            self._shares.take(name, amount)
            return
        if self._shares.capacity < self._capacity:
            raise DiskFullError("the temporary disk has too little room left: this upload would take that of others")
        total = self._shares.count_held(name)
        detail = f"your uploads hold {total} bytes of the temporary disk, and more would leave too little for others"
        raise HTTPException(429, detail, RETRY_HEADER)


# Requests.

ALWAYS_ANSWERED = frozenset({"/livez", "/readyz", "/metrics"})
"""Routes that are answered however busy the process is: restarting it for being busy would help nobody."""

TRANSFER = re.compile(
    r"/v1/(?:batches|calibrations)(?:/[^/]+/(?:results|errors))?|/v1/labels/(?:import|export)|/batches/[^/]+/(?:results|errors)"
)
WATCH = re.compile(r"(?:/v1/(?:batches|calibrations)|/batches)/[^/]+/events")

SEND_TIMEOUT_S = 60.0
"""Seconds for a client to take the next part of a stream; one that does not read loses its place."""


class RequestKind(NamedTuple):
    """A kind of request, and the places that its requests share."""

    places: Shares
    description: str
    is_stream: bool = False
    """Whether its requests last long and take little: bodies go to a file, and clients must read in time."""


class Fairness:
    """Passes on a request that its sender has room for."""

    def __init__(self, *, requests: int, each: int | None, streams: int, body_bytes: int, largest: int) -> None:
        """`requests` at once, `each` of them of one tenant; `streams` of each kind; `body_bytes` of requests in memory.

        `largest`: bytes of one body, beyond which it is refused. There is always room for one of these.
        """
        self._bodies = Shares(max(body_bytes, 2 * largest))
        self._largest = largest
        self._requests = RequestKind(Shares(requests, each=each), "requests under way")
        self._transfers = RequestKind(Shares(streams), "batches sent or fetched", is_stream=True)
        self._watches = RequestKind(Shares(streams), "batches watched", is_stream=True)

    async def __call__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on to `app`, or raise HTTPException: 429, or 503 if others hold everything."""
        if (path := scope["path"]) in ALWAYS_ANSWERED:
            await app(scope, receive, send)
            return
        transfer = self._transfers if TRANSFER.fullmatch(path) else self._requests
        kind, name = self._watches if WATCH.fullmatch(path) else transfer, find_payer(scope)
        if not kind.places.take(name):
            raise kind.places.build_full_error(name, kind.description)
        try:
            if kind.is_stream:
                await app(scope, receive, _bound_sending(send))
            else:
                await self._pass_with_body(name, app, scope, receive, send)
        finally:
            kind.places.give(name)

    async def _pass_with_body(self, name: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; count the bytes of its body from their announcement until the response."""
        seen = counted = 0

        def count(size: float) -> None:
            nonlocal counted
            more = int(min(size, self._largest)) - counted
            if more > 0:
                if not self._bodies.take(name, more):
                    raise self._bodies.build_full_error(name, "bytes of bodies")
                counted += more

        async def receive_counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            count(seen)
            return message

        try:
            count(read_declared_length(Headers(scope=scope)))
            await app(scope, receive_counted, send)
        finally:
            if counted:
                self._bodies.give(name, counted)


def _bound_sending(send: Send) -> Send:
    """Send, and raise ClientDisconnect if the client does not read in time."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send(message)
        except TimeoutError:
            raise ClientDisconnect from None

    return send_in_time
