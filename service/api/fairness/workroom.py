"""Where bodies are processed: small ones on the event loop, large ones in threads, each tenant in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from starlette.requests import Request

from service.api.access import find_payer
from service.api.fairness.turns import Threads, Turns
from service.api.presence import await_while_connected
from service.reading.strict_json import Limits, parse_strictly
from service.scoring_process import LARGE_BYTES

T = TypeVar("T")

OFF_LOOP_BYTES = 16 * 1024
"""Bodies over this size are processed in a thread, so that one large trace does not delay the small ones."""

THREAD_COUNT = 4
"""They share one interpreter: more of them would finish nothing sooner, and slow the event loop."""


class Workroom:
    """The event loop and some threads, shared by all requests of a process."""

    def __init__(self) -> None:
        self._threads = Threads(THREAD_COUNT, name="scoring")
        self._loop = Turns(1)

    async def handle(
        self,
        request: Request,
        data: bytes,
        limits: Limits,
        work: Callable[[JsonValue], T],
        handle_large: Callable[[bytes, Limits], T | None] | None = None,
    ) -> T:
        """Parse a body, and return what `work` makes of it. Raises what parsing and `work` raise.

        `handle_large` may do the same for a large body elsewhere; if it returns None, `work` does it here.
        """
        name = find_payer(request.scope)

        def do_all() -> T:
            result = handle_large(data, limits) if handle_large is not None and len(data) >= LARGE_BYTES else None
            return work(parse_strictly(data, limits)) if result is None else result

        if len(data) > OFF_LOOP_BYTES:
            return await await_while_connected(request, self._threads.run(name, do_all, cost=len(data)))
        if not self._loop.take_now(name):
            await await_while_connected(request, self._loop.take(name))
        try:
            return do_all()
        finally:  # in the next iteration of the loop, so that a name that came meanwhile goes before this one's next
            asyncio.get_running_loop().call_soon(self._loop.give, name)
