"""A Redis that goes wrong when told to: a relay before a real one, and a server that never answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

Fault = Literal["", "hang", "lose"]


class Relay:
    """Passes bytes both ways until `fault` is set: `hang` swallows them, `lose` ends each reply after three bytes."""

    def __init__(self, behind: str | None, fault: Fault = "") -> None:
        self.behind = urlsplit(behind) if behind else None
        self.fault: Fault = fault
        self.port = 0
        self.asked = 0
        """Chunks of bytes that came from clients."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        secret = f"{self.behind.netloc.rpartition('@')[0]}@" if self.behind and "@" in self.behind.netloc else ""
        return f"redis://{secret}127.0.0.1:{self.port}{self.behind.path if self.behind else ''}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        with suppress(ConnectionError, asyncio.CancelledError):
            await self._swallow(reader) if self.behind is None else await self._relay(reader, writer)
        writer.close()

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(65_536):
            self.asked += 1

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.behind
        from_real, to_real = await asyncio.open_connection(self.behind.hostname, self.behind.port or 6379)
        ways = [asyncio.ensure_future(one) for one in (self._there(reader, to_real), self._back(from_real, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            to_real.close()

    async def _there(self, reader: asyncio.StreamReader, to_real: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            self.asked += 1
            if self.fault != "hang":
                to_real.write(data)

    async def _back(self, from_real: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await from_real.read(65_536):
            if self.fault == "lose":
                writer.write(data[:3])
                await writer.drain()
                return
            if not self.fault:
                writer.write(data)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def relay(behind: str | None, fault: Fault = "") -> AsyncIterator[Relay]:
    """A relay on a free port; without anything behind it, it takes what it is sent and never answers."""
    made = Relay(behind, fault)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.stop()
        await server.wait_closed()
