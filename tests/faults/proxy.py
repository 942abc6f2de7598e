"""A TCP proxy that can take the server behind it away for a while, swallow what it is sent, or break replies off."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Fault = Literal["", "hang", "lose"]


class Proxy:
    """Passes bytes on between its own port and a server's, until `fault` is set.

    `hang` swallows them; `lose` breaks each reply off after three bytes. `asked` counts the parts that came from clients.
    """

    def __init__(self, host: str, port: int) -> None:
        self.fault: Fault = ""
        self.asked = 0
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port: int = found.getsockname()[1]

    def up(self) -> None:
        asyncio.run_coroutine_threadsafe(self._up(), self._loop).result()

    def down(self) -> None:
        """The server is gone, and so is every connection to it."""
        asyncio.run_coroutine_threadsafe(self._down(), self._loop).result()

    def run(self) -> None:
        """Serves, in this thread, until it is stopped."""
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def stop(self) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _up(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_address=True)

    async def _down(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.05)  # so that those who read from them notice

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there, back = await asyncio.open_connection(*self._target)
            self._writers |= {writer, back}
            await asyncio.gather(self._pass_on(reader, back), self._pass_back(there, writer))
            self._writers -= {writer, back}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                self.asked += 1
                writer.write(b"" if self.fault == "hang" else data)
                await writer.drain()
        writer.transport.abort()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data[:3] if self.fault == "lose" else data)
                await writer.drain()
                if self.fault == "lose":
                    break
        writer.transport.abort()


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    proxy = Proxy(host, port)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    proxy.up()
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join()
