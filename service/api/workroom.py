"""Where bodies are worked on: small ones on the event loop, large ones in threads, each tenant in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from starlette.requests import Request

from service.api.access import payer_of
from service.api.body import read
from service.api.presence import attended
from service.api.threads import Threads
from service.api.turns import Turns
from service.io.jsonbody import Limits, parse

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
        """What `work` makes of the parsed body. Raises what `read`, the parser and `work` raise."""
        data = await read(request, limits)
        name = payer_of(request.scope)

        def whole() -> T:
            return work(parse(data, limits))

        if len(data) > OFF_LOOP:
            return await attended(request, self._threads.run(name, whole, cost=len(data)))
        if not self._loop.take_now(name):
            await attended(request, self._loop.take(name))
        try:
            return whole()
        finally:  # in the next round of the loop: who was heard meanwhile has a turn before the next of this name
            asyncio.get_running_loop().call_soon(self._loop.give, name)
