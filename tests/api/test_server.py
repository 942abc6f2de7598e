"""The service as a process: it starts, takes bodies as slowly as they come, survives what kills parsers, and stops in order."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

import pytest

from tests.forked import Command, Forked
from tests.jobs.process import until

GOOD = json.dumps(
    {
        "trace": {
            "format": "openai",
            "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
        },
        "expected": {"calls": "none"},
    }
).encode()

PAGES = "pages: "
"""What goes before the address that `serve` prints."""

SOON = 240
"""Seconds after which a test gives up; nothing here takes more than a few."""


@dataclass
class Server:
    """A running service."""

    process: Forked
    file: Path
    connections: list[Connection] = field(default_factory=list)

    @property
    def log(self) -> list[str]:
        """What it has written, but for where its pages are."""
        return [line for line in self.file.read_text().splitlines() if not line.startswith(PAGES)]

    @property
    def pages(self) -> str:
        """The address of its pages."""
        until(lambda: PAGES in self.file.read_text())
        return next(line for line in self.file.read_text().splitlines() if line.startswith(PAGES)).removeprefix(PAGES)

    @cached_property
    def port(self) -> int:
        until(lambda: '"listening"' in self.file.read_text() or self.process.poll() is not None)
        return json.loads(next(line for line in self.log if '"listening"' in line))["port"]

    def connect(self) -> Connection:
        self.connections.append(Connection(socket.create_connection(("127.0.0.1", self.port), timeout=SOON)))
        return self.connections[-1]

    def ask(self, method: str, path: str, body: bytes = b"", *headers: str) -> tuple[int, bytes]:
        connection = self.connect()
        connection.send(head(method, path, len(body), *headers) + body)
        return connection.answer()

    def stop(self) -> int:
        """Tells it to stop; gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SOON)


class Connection:
    """A connection that sends bytes as they are."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.stream: IO[bytes] = sock.makefile("rb")

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def close(self) -> None:
        self.stream.close()
        self.sock.close()

    def answer(self) -> tuple[int, bytes]:
        """The status and body of the next response; (0, b"") where the connection was closed."""
        status = self.stream.readline()
        if not status:
            return 0, b""
        length = 0
        while (line := self.stream.readline().strip()) not in (b"", b"\r\n"):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return int(status.split()[1]), self.stream.read(length)


def head(method: str, path: str, length: int | None, *headers: str) -> bytes:
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    media = "application/x-ndjson" if path == "/v1/batches" else "application/json"
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-type: {media}", size, *headers, "", ""]
    return "\r\n".join(lines).encode()


def build_command(home: Path, module: str, *words: str, **settings: str) -> Command:
    """What a process of ours runs, with nothing set but this; its log is a file in its home."""
    ours = {"CALLGRADE_HOME": str(home), "CALLGRADE_WORKER": "false"} | {
        f"CALLGRADE_{name.upper()}": value for name, value in settings.items()
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CALLGRADE_")} | ours
    return Command(module, words, environment, home / ("server.log" if "serve" in words else "worker.log"))


@contextmanager
def working(home: Path, **settings: str) -> Iterator[None]:
    """A worker over the store of a service, in a process of its own."""
    worker = Forked(build_command(home, "service.cli", "worker", **settings))
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(SOON)


@contextmanager
def serving(home: Path, *, module: str = "service.cli", **settings: str) -> Iterator[Server]:
    """A service on a port of its own, by default our own. What it logged is read when it has ended."""
    command = build_command(home, module, "serve", "--port", "0", **settings)
    server = Server(Forked(command), command.log)
    try:
        assert server.port
        yield server
    finally:
        for connection in server.connections:
            connection.close()
        server.process.terminate()
        server.process.wait(SOON)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize("headers", [(), ("connection: close",)], ids=["kept", "closed"])
def test_too_large_a_body_is_refused_while_it_comes(server: Server, headers: tuple[str, ...]) -> None:
    connection = server.connect()
    connection.send(head("POST", "/v1/score", None, *headers) + b"500000\r\n" + bytes(5 * 2**20) + b"\r\n")
    assert connection.answer()[0] == 413  # the body has not ended
    connection.send(b"500000\r\n" + bytes(5 * 2**20) + b"\r\n0\r\n\r\n")
    if not headers:
        connection.send(head("GET", "/livez", 0))
    assert connection.answer()[0] == (0 if headers else 200)


@pytest.mark.parametrize(("method", "path", "status"), [("POST", "/v1/nothing", 404), ("PUT", "/v1/score", 405)])
def test_who_is_refused_before_the_body_is_read_learns_it(server: Server, method: str, path: str, status: int) -> None:
    assert server.ask(method, path, bytes(12_000_000), "connection: close")[0] == status


def test_the_rest_of_a_refused_body_is_not_taken_for_a_request(server: Server) -> None:
    connection = server.connect()
    connection.send(head("POST", "/v1/score", 50_000_000, "expect: 100-continue") + head("DELETE", "/readyz", 0))
    assert connection.answer()[0] == 413
    assert b'method="DELETE"' not in server.ask("GET", "/metrics")[1]


def started(server: Server) -> Connection:
    """A connection whose request is under way: the service has asked for its body."""
    connection = server.connect()
    connection.send(head("POST", "/v1/score", len(GOOD), "expect: 100-continue"))
    assert connection.answer() == (100, b"")
    connection.send(GOOD[:20])
    return connection


def test_a_request_under_way_is_answered_before_the_process_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        connection = started(running)
        running.process.send_signal(signal.SIGTERM)
        connection.send(GOOD[20:])
        status, body = connection.answer()
        assert (status, json.loads(body)["verdict"]) == (200, "pass")
        assert connection.answer() == (0, b"")
        assert running.process.wait(SOON) == 0


def test_a_request_that_never_ends_does_not_hold_the_process(tmp_path: Path) -> None:
    with serving(tmp_path, graceful_seconds="1") as running:
        connection = started(running)
        assert running.stop() == 0
        assert connection.answer()[0] != 200


def test_an_idle_connection_does_not_hold_the_process(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        connection = running.connect()
        connection.send(head("GET", "/livez", 0))
        assert connection.answer()[0] == 200
        assert running.stop() == 0


def test_what_the_process_logs_is_json_without_secrets(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        running.ask("GET", "/docs?key=canary", b"", "authorization: Bearer canary", "cookie: canary")
        running.ask("POST", "/v1/score?key=canary", GOOD)
        running.ask("POST", "/v1/score", GOOD.replace(b"Hi", b"canary"))
        running.ask("POST", "/v1/score", b'{"canary": ')
        running.ask("GET", "/canary")
        broken = running.connect()
        broken.send(b"canary\r\n\r\n")
        broken.answer()
        assert running.stop() == 0
    lines = [json.loads(line) for line in running.log]
    assert [line["status"] for line in lines if line["message"] == "request"] == [200, 422, 200, 400, 404]
    assert "canary" not in "".join(running.log)


def test_settings_bound_the_process(tmp_path: Path) -> None:
    with serving(tmp_path, max_body_bytes="1024", max_concurrency="1") as running:
        assert running.ask("POST", "/v1/score", GOOD + b" " * 1_024)[0] == 413
        busy = started(running)
        assert running.ask("POST", "/v1/score", GOOD)[0] in (429, 503)  # our share is used, or all of it
        until(lambda: running.ask("GET", "/readyz")[0] == 200)  # it may still be loading
        busy.send(GOOD[20:])
        assert busy.answer()[0] == 200
