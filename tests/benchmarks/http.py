"""(b) and (c): what a request over HTTP takes, against an idiomatic FastAPI route that parses and echoes the same models.

Both are served as `callgrade serve` serves. Processor time is the least of interleaved rounds; it needs Linux's /proc.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.workload import cases, request

CONNECTIONS = 16
SECONDS = 3.0
ROUNDS = 4


def measure() -> None:
    """Prints requests a second of both routes, and the cost of a list against the same work in process."""
    _, workload = cases()
    bodies = [json.dumps(request(case)).encode() for case in workload]
    served = {"score": (serve_callgrade, "/v1/score"), "echo": (serve_echo, "/echo")}
    rounds = [{name: load(*what, bodies).cpu_us for name, what in served.items()} for _ in range(ROUNDS)]
    score, echo = (min(spent[name] for spent in rounds) for name in served)
    print("(b) POST /v1/score, one core for the server, all checks and middleware on")
    print(f"    idiomatic FastAPI echo of the same models                         {echo:8.0f} us of CPU")
    print(f"    /v1/score                                                         {score:8.0f} us of CPU")
    print(f"    echo / score                                                      {echo / score:8.2f}")
    _measure_waits(bodies)


def _measure_waits(bodies: Sequence[bytes]) -> None:
    """Prints how long requests wait that come at half the rate that the server can bear, by when they were due."""
    half = rate(serve_callgrade, "/v1/score", bodies) / 2
    with _Served(serve_callgrade) as port:
        _await_readiness(port)
        waits = sorted(asyncio.run(_arrive(port, [_http("/v1/score", body) for body in bodies], half)))
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(f"    at {half:.0f} requests a second, half of what it bears: p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms")
    print(f"    p99 / p50                                                         {p99 / p50:8.2f}")


def serve_callgrade() -> Any:
    """The application under test."""
    from service.api.app import create_app

    return create_app()


def serve_echo() -> Any:
    """What one would write first: typed models in, the same models out."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Call(BaseModel):
        id: str
        type: str
        function: dict[str, str]

    class Message(BaseModel):
        role: str
        content: str | None
        tool_calls: list[Call] | None = None

    class Trace(BaseModel):
        format: str
        id: str
        tools: list[dict[str, Any]]
        messages: list[Message]

    class Score(BaseModel):
        trace: Trace
        expected: dict[str, Any]
        judges: str

    Score.model_rebuild(_types_namespace={"Trace": Trace, "Any": Any})
    app = FastAPI()

    async def echo(body: Score) -> Score:
        return body

    echo.__annotations__ = {"body": Score, "return": Score}
    app.post("/echo")(echo)
    return app


def _serve(make: Callable[[], Any], sock: socket.socket) -> None:
    import uvicorn

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    config = uvicorn.Config(make(), access_log=False, log_level="error", server_header=False, http="h11")
    uvicorn.Server(config).run(sockets=[sock])


def read_cpu(pid: int | None) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Served:
    """A server process on a free port, pinned to one core."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # inherited; asyncio sets it only on its own sockets
        self.port = self.sock.getsockname()[1]
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_serve, args=(make, self.sock), daemon=True)

    def __enter__(self) -> int:
        self.process.start()
        self.sock.close()
        return self.port

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.join(10)


class Load(NamedTuple):
    """What a server took under load."""

    rate: float
    """Requests a second."""
    cpu_us: float
    """Microseconds of its processor time for each."""


def rate(make: Callable[[], Any], path: str, bodies: Sequence[bytes]) -> float:
    """Requests a second of a server on one core, from a client on the other."""
    return load(make, path, bodies).rate


def load(make: Callable[[], Any], path: str, bodies: Sequence[bytes]) -> Load:
    """The same with the processor time that they take the server."""
    server = _Served(make)
    with server as port:
        return asyncio.run(_load(port, [_http(path, body) for body in bodies], lambda: read_cpu(server.process.pid)))


def _http(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode("latin-1"))
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)


def _await_readiness(port: int) -> None:
    """Until all is loaded: at its start a server loads litellm beside what it answers."""
    while True:
        with contextlib.suppress(OSError), contextlib.closing(HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == HTTPStatus.OK:
                return
        time.sleep(0.1)


async def _arrive(port: int, messages: Sequence[bytes], per_second: float) -> list[float]:
    """Seconds from when each request was due to its answer, after a second of warm-up."""
    waits: list[float] = []
    start = time.perf_counter()
    dues = (start + n / per_second for n in range(int(per_second * (1 + SECONDS))))

    async def client(offset: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n, due in enumerate(dues, offset):
            await asyncio.sleep(due - time.perf_counter())
            writer.write(messages[n % len(messages)])
            await _answer(reader)
            waits.extend([time.perf_counter() - due] if due > start + 1 else [])
        writer.close()

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(1, os.cpu_count() or 1)) or {0})
    await asyncio.gather(*(client(n * 17) for n in range(CONNECTIONS)))
    return waits


async def _load(port: int, messages: Sequence[bytes], cpu: Callable[[], float]) -> Load:
    """A closed loop of a few connections, after a warm-up."""
    done = 0

    async def client(offset: int, until: float) -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        n = offset
        while time.perf_counter() < until:
            writer.write(messages[n % len(messages)])
            await _answer(reader)
            n += 1
            done += 1
        writer.close()

    async def run(seconds: float) -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(client(n * 17, until) for n in range(CONNECTIONS)))

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(1, os.cpu_count() or 1)) or {0})
    await run(1.0)
    done, before, start = 0, cpu(), time.perf_counter()
    await run(SECONDS)
    return Load(done / (time.perf_counter() - start), 1e6 * (cpu() - before) / done)
