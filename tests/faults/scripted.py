"""An HTTP server that answers as a test says, and can break off in the middle of an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What goes back. `missing`: bytes that are promised and never come."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0


@dataclass
class Scripted:
    """The server: what was asked of it, as `GET /path?query`."""

    answer: Callable[[str, int], Answer]
    """Of a request, and how often the same was asked before."""
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def scripted(answer: Callable[[str, int], Answer]) -> Iterator[Scripted]:
    script = Scripted(answer)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            request = f"{self.command} {self.path}"
            found = script.answer(request, script.asked.count(request))
            script.asked.append(request)
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(found.body) + found.missing))
            self.end_headers()
            self.wfile.write(found.body)
            self.close_connection = True

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 (the library's names)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
