"""Cancel work that a client waits for when the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def await_while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await `work`; raise ClientDisconnect if the client leaves first, and cancel the work.

    Only for a request with its body already read: this consumes what comes next on the connection.
    """
    limit = asyncio.timeout(None)
    try:
        async with limit:
            watcher = asyncio.create_task(_expire(request, limit))
            try:
                return await work
            finally:
                watcher.cancel()
    except TimeoutError:
        if limit.expired():
            raise ClientDisconnect from None
        raise


async def _expire(request: Request, limit: asyncio.Timeout) -> None:
    """Let the time limit of the work expire as soon as the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    limit.reschedule(asyncio.get_running_loop().time())
