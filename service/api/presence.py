"""Whether the client is still there: what it waits for ends when it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def await_attended(request: Request, work: Awaitable[T]) -> T:
    """What `work` gives; ClientDisconnect where the client leaves first, and then the work is cancelled.

    For a request whose body has been read: what comes after it on the connection is looked at.
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
    """Ends the time that the work has, as soon as the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    limit.reschedule(asyncio.get_running_loop().time())
