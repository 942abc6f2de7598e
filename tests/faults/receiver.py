"""A server that does with each connection what a script says, and keeps what it was sent: a sandbox, or a webhook's receiver."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

Behaviour = Callable[[socket.socket], None]


def http(body: bytes, head: bytes = b"HTTP/1.1 200 OK\r\n") -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def whole_request(connection: socket.socket) -> bytes:
    """Read to its end: closing a connection with bytes left unread would reset it. ConnectionError where none comes."""
    with connection.makefile("rb") as stream:
        head: list[bytes] = []
        while (line := stream.readline()) != b"\r\n":
            if not line:
                raise ConnectionError
            head.append(line)
        length = next(int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length"))
        return b"".join(head) + b"\r\n" + stream.read(length)


def drip(start: bytes, piece: bytes) -> Behaviour:
    """Sends `start` and then `piece` again and again until nobody listens."""

    def behaviour(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(piece)
            time.sleep(0.02)

    return behaviour


def stall(connection: socket.socket) -> None:
    """Waits until the other side leaves."""
    connection.recv(1)


class Scripted:
    """Listens on 127.0.0.1, or at every address of this machine. `connections` counts those that were taken."""

    def __init__(self, behaviour: Behaviour, *, everywhere: bool = False) -> None:
        self.behaviour = behaviour
        self.requests: list[bytes] = []
        self.connections = 0
        self.listener = _everywhere() if everywhere else socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.requests.append(whole_request(connection))
            self.behaviour(connection)

    def untouched(self) -> bool:
        """Whether nobody has connected: one connection of ours, which stands behind all others in the queue, is the first."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as ours:
            ours.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            ours.recv(1)  # it was taken
        return self.connections == 1


def _everywhere() -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("0.0.0.0", 0))  # noqa: S104 (that is what is asked)


@contextmanager
def scripted(behaviour: Behaviour | bytes, *, everywhere: bool = False) -> Iterator[Scripted]:
    """A server with a behaviour, or one that always sends the same bytes."""
    script = behaviour if callable(behaviour) else lambda connection: connection.sendall(behaviour)
    server = Scripted(script, everywhere=everywhere)
    with closing(server.listener):
        yield server


@contextmanager
def crowded() -> Iterator[int]:
    """The port of a listener that takes no more connections: whoever connects waits."""
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        place = listener.getsockname()
        for _ in range(4):  # the kernel takes one or two for us
            ahead = waiting.enter_context(socket.socket())
            ahead.setblocking(False)
            with suppress(BlockingIOError):
                ahead.connect(place)
        yield place[1]
