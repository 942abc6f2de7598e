"""Heads as hostile clients write them, to a server of ours: what is no HTTP is refused, and nothing that a client sends is
kept without a bound. (What remains is for a proxy: docs/operating.md.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

from service.cli.commands.serve import MAX_HEAD_BYTES
from tests.api.test_server import GOOD, Server, head, serving

AHEAD = 100

HOST = b"host: localhost\r\n"
LIVE = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNK = b"%x\r\n%b\r\n0\r\n" % (len(GOOD), GOOD)
FLOOD = b"a" * 40 * MAX_HEAD_BYTES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


def get(line: bytes = b"GET /livez HTTP/1.1", fields: bytes = HOST) -> bytes:
    return line + b"\r\n" + fields + b"\r\n"


def post(*fields: str, length: int | None = len(GOOD)) -> bytes:
    return head("POST", "/v1/score", length, *fields)


READ = [
    ("a length", post() + GOOD),
    ("chunks", post(length=None) + CHUNK + b"\r\n"),
    ("chunks with an extension", post(length=None) + CHUNK.replace(b"\r\n", b";a=b\r\n", 1) + b"\r\n"),
    ("no host in HTTP/1.0", get(b"GET /livez HTTP/1.0", b"")),
    ("a long path", get(b"GET /docs?" + b"a" * 60_000 + b" HTTP/1.1")),
    ("a long field", get(fields=HOST + b"x: " + b"a" * 60_000 + b"\r\n")),
    ("many fields", get(fields=HOST + b"x: a\r\n" * 5_000)),
]
REFUSED = [
    ("two lengths", post("content-length: 3") + GOOD),
    ("a length below zero", post(length=-1) + GOOD),
    ("an endless length", post(length=10**30)),
    ("another encoding before chunks", post(length=None).replace(b"chunked", b"gzip, chunked") + CHUNK + b"\r\n"),
    ("another encoding after chunks", post(length=None).replace(b"chunked", b"chunked, gzip") + CHUNK + b"\r\n"),
    ("no host", get(fields=b"")),
    ("two hosts", get(fields=HOST + b"host: other\r\n")),
    ("a NUL", get(fields=HOST + b"x: a\0b\r\n")),
    ("a carriage return in a field", get(fields=HOST + b"x: a\rb: c\r\n")),
    ("bytes in a path", get("GET /livéz HTTP/1.1".encode())),
    ("HTTP/0.9", b"GET /livez\r\n\r\n"),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 300),
]
ENDLESS = [
    ("a path", b"GET /livez?" + FLOOD),
    ("a name", get()[:-2] + FLOOD),
    ("a value", get()[:-2] + b"x: " + FLOOD),
    ("fields", get()[:-2] + b"x: a\r\n" * (len(FLOOD) // 6)),
    ("empty lines", b"\r\n" * (len(FLOOD) // 2)),
    ("a trailer", post(length=None) + CHUNK + b"x: " + FLOOD),
    ("trailers", post(length=None) + CHUNK + b"x: a\r\n" * (len(FLOOD) // 6)),
    ("an extension of a chunk", post(length=None) + b"5;a=" + FLOOD),
]


def ids(rows: list[tuple[str, bytes]]) -> list[object]:
    return [pytest.param(sent, id=name) for name, sent in rows]


@pytest.mark.parametrize("sent", ids(READ))
def test_what_is_read(server: Server, sent: bytes) -> None:
    connection = server.connect()
    connection.send(sent)
    assert connection.answer()[0] == 200


def read_statuses(server: Server, sent: bytes) -> list[bytes]:
    """The statuses of all that is answered until the server closes the connection."""
    connection = server.connect()
    with suppress(ConnectionError):  # it may be closed before all is sent
        connection.send(sent)
        return re.findall(rb"HTTP/1\.1 (\d+)", connection.stream.read())
    return []


@pytest.mark.parametrize("sent", ids(REFUSED))
def test_what_is_no_http_is_refused(server: Server, sent: bytes) -> None:
    assert read_statuses(server, sent + LIVE) == [b"400"]


@pytest.mark.parametrize("sent", ids(ENDLESS))
def test_what_never_ends_is_not_kept(server: Server, sent: bytes) -> None:
    assert read_statuses(server, sent) in ([b"400"], [])
    assert server.ask("GET", "/livez")[0] == 200


def test_a_trailer_is_no_field_of_the_head(server: Server) -> None:
    connection = server.connect()
    connection.send(post(length=None) + CHUNK + b"content-encoding: gzip\r\n\r\n" + LIVE)
    assert [connection.answer()[0], connection.answer()[0]] == [200, 200]


@pytest.mark.parametrize("split", [False, True], ids=["at once", "body by itself"])
@pytest.mark.parametrize("to", ["h2c", "websocket"])
def test_who_offers_another_protocol_is_answered_in_this_one(server: Server, to: str, split: bool) -> None:
    connection = server.connect()
    parts = [post("connection: Upgrade, HTTP2-Settings", f"upgrade: {to}", "http2-settings: AAMAAABkAAQ"), GOOD]
    for _ in range(2):
        for part in parts if split else [b"".join(parts)]:
            connection.send(part)
        assert connection.answer()[0] == 200
    connection.send(b"".join(parts) * 2 + LIVE)
    assert [connection.answer()[0] for _ in range(3)] == [200] * 3


def test_requests_may_be_sent_ahead_of_answers(server: Server) -> None:
    connection = server.connect()
    connection.send(LIVE * AHEAD)
    assert [connection.answer()[0] for _ in range(AHEAD)] == [200] * AHEAD
