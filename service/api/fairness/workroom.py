"""Where bodies are worked on: small ones on the event loop, large ones in threads, each tenant in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from starlette.requests import Request

from service.api.access import find_payer
from service.api.body import read_body
from service.api.fairness.threads import Threads
from service.api.fairness.turns import Turns
from service.api.presence import await_attended
from service.reading.strict_json import Limits, parse
from service.scoring_process import LARGE_BYTES

T = TypeVar("T")

OFF_LOOP = 16 * 1024
"""Bodies over this many bytes are worked on in a thread, so that one large trace does not stall the small ones."""

THREADS = 4
"""They share one interpreter, so that more of them would finish nothing sooner, and slow the event loop down."""


class Workroom:
    """The event loop and some threads, shared by all requests of a process."""

    def __init__(self) -> None:
        self._threads = Threads(THREADS, name="scoring")
        self._loop = Turns(1)

    async def handle(self, request: Request, limits: Limits, work: Callable[[JsonValue], T]) -> T:
        """What `work` makes of the parsed body. Raises what `read_body`, the parser and `work` raise."""
        return await self.make(request, await read_body(request, limits), limits, work)

    async def make(
        self,
        request: Request,
        data: bytes,
        limits: Limits,
        work: Callable[[JsonValue], T],
        apart: Callable[[bytes, Limits], T | None] | None = None,
    ) -> T:
        """As `handle`, of a body that was read. `apart` makes the same of a large one elsewhere, or nothing."""
        name = find_payer(request.scope)

        def do_whole() -> T:
            found = apart(data, limits) if apart is not None and len(data) >= LARGE_BYTES else None
            return work(parse(data, limits)) if found is None else found

        if len(data) > OFF_LOOP:
            return await await_attended(request, self._threads.run(name, do_whole, cost=len(data)))
        if not self._loop.take_now(name):
            await await_attended(request, self._loop.take(name))
        try:
            return do_whole()
        finally:  # in the next round of the loop: who was heard meanwhile has a turn before the next of this name
            asyncio.get_running_loop().call_soon(self._loop.give, name)
