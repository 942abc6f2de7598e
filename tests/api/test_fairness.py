"""Two tenants and one server, a process of its own: whatever the one does, the other is answered."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.api.test_server import GOOD, SOON, Connection, Server, head, serving
from tests.jobs.process import until

ITEM = json.dumps({"custom_id": "a", **json.loads(GOOD)}).encode()


@dataclass
class Tenants:
    """A server that two tenants share, the one of them hostile."""

    server: Server
    keys: dict[str, str]

    def ask(self, name: str, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        return self.server.ask(method, path, body, *self._headers(name))

    def begin(self, name: str, method: str, path: str, length: int = 0, body: bytes = b"") -> Connection:
        """A connection on which a request has been sent, as far as it goes."""
        connection = self.server.connect()
        connection.send(head(method, path, length, *self._headers(name)) + body)
        return connection

    def score(self, name: str, body: bytes = GOOD) -> int:
        return self.ask(name, "POST", "/v1/score", body)[0]

    def in_flight(self) -> int:
        """Requests under way, without the one that asks."""
        told = self.ask("good", "GET", "/metrics")[1].decode()
        return int(float(told.partition("\ncallgrade_http_in_flight ")[2].split()[0])) - 1

    def _headers(self, name: str) -> tuple[str, ...]:
        return (f"authorization: Bearer {self.keys[name]}",)


@contextmanager
def tenants(home: Path, **settings: str) -> Iterator[Tenants]:
    database = prepare_database(Settings(home=home))
    made = Keys(database)
    keys = {name: made.create(name=name, tenant=name, scopes=["admin"])[1] for name in ("good", "hostile")}
    database.close()
    with serving(home, **settings) as server:
        yield Tenants(server, keys)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with tenants(tmp_path_factory.mktemp("home")) as running:
        yield running


def statuses(connections: list[Connection]) -> Counter[int]:
    """What connections were answered; only the heads are read."""
    return Counter(int(connection.stream.readline().split()[1]) for connection in connections)


def leave(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()


def retry_after(connection: Connection) -> tuple[int, str]:
    """The status of a response, and when to come again."""
    status = int(connection.stream.readline().split()[1])
    lines = dict(line.decode().strip().split(": ", 1) for line in iter(connection.stream.readline, b"\r\n"))
    return status, lines.get("retry-after", "")


def test_event_streams_of_one_tenant_shut_nobody_out(two: Tenants) -> None:
    batch = json.loads(two.ask("hostile", "POST", "/v1/batches", ITEM)[1])["id"]
    watch = f"/v1/batches/{batch}/events"
    watches = [two.begin("hostile", "GET", watch) for _ in range(100)]
    assert statuses(watches) == {200: 100}
    assert retry_after(two.begin("hostile", "GET", watch)) == (429, "1")
    assert two.score("hostile") == 200
    status, answer = two.ask("good", "POST", "/v1/batches", ITEM)
    assert (two.score("good"), status) == (200, 202)
    mine = two.begin("good", "GET", f"/v1/batches/{json.loads(answer)['id']}/events")
    assert statuses([mine]) == {200: 1}
    leave([*watches, mine])


@pytest.mark.parametrize("path", ["/v1/score", "/v1/batches"])
def test_bodies_of_one_tenant_that_never_end_shut_nobody_out(two: Tenants, path: str) -> None:
    bodies = [two.begin("hostile", "POST", path, 1_000, b"{") for _ in range(100)]
    until(lambda: two.in_flight() >= 100)
    assert retry_after(two.begin("hostile", "POST", path, len(GOOD), GOOD)) == (429, "1")
    assert two.score("good") == 200
    assert two.ask("good", "POST", "/v1/batches", ITEM)[0] == 202
    leave(bodies)
    until(lambda: two.in_flight() == 0)
    assert two.score("hostile") == 200


def test_bytes_of_bodies_are_shared_out(tmp_path: Path) -> None:
    with tenants(tmp_path, max_body_bytes="65536", max_bodies_bytes="524288") as two:
        announced = [two.begin("hostile", "POST", "/v1/score", 65_536, b"{") for _ in range(4)]
        until(lambda: two.in_flight() == 4)
        assert retry_after(two.begin("hostile", "POST", "/v1/score", 65_536, b"{")) == (429, "1")
        chunk = b"%x\r\n" % 60_000 + b" " * 60_000
        chunked = two.server.connect()
        chunked.send(head("POST", "/v1/score", None, f"authorization: Bearer {two.keys['hostile']}") + chunk)
        assert retry_after(chunked) == (429, "1")
        assert two.score("good", GOOD + b" " * 60_000) == 200
        leave(announced)
        until(lambda: two.in_flight() == 0)
        assert two.score("hostile", GOOD + b" " * 60_000) == 200


def giant() -> bytes:
    """A trace of some 900 kB, with calls of many tools."""
    events: list[Any] = [{"user": "Do it."}]
    for number in range(2_000):
        call = {"name": f"tool_{number % 50}", "arguments": {"order": number, "note": "lorem ipsum " * 6}}
        result = {"id": number, "status": "ok", "text": f"value {number} of it", "more": "x" * 200}
        events.append({"call": call, "result": result})
    return json.dumps({"trace": {"format": "callgrade", "events": events}}).encode()


def test_giants_of_one_tenant_let_the_small_ones_of_others_pass(two: Tenants) -> None:
    body, answered = giant(), []
    giants = [two.begin("hostile", "POST", "/v1/score", len(body), body) for _ in range(8)]
    readers = [threading.Thread(target=lambda one=one: answered.append(one.answer()[0])) for one in giants]
    for reader in readers:
        reader.start()
    until(lambda: two.in_flight() + len(answered) >= 8)  # some may have been counted on both sides
    first = len(answered)
    found = [two.score("good"), two.score("good", GOOD + b" " * 20_000)]  # on the event loop and in a thread
    meanwhile = len(answered) - first
    for reader in readers:
        reader.join(2 * SOON)
    assert (found, answered) == ([200, 200], [200] * 8)
    assert meanwhile <= 4
