"""Two tenants and one server, a process of its own: whatever the one does, the other is answered, by judges too."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from service.api.app import create_app
from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import build_engine, prepare_database
from tests.api.asgi_caller import bearer, exchange
from tests.api.test_judged import body, judged
from tests.api.test_server import GOOD, SOON, Connection, Server, head, serving
from tests.faults.provider import Provider
from tests.jobs.process import until
from tests.stores import open_new_store

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


ANSWERED = ["400", "403", "filter", "refusal", "not-json", "length"]
"""What a provider says to a request and not of itself."""

BROKEN = ["hang", "500", "reset", "401"]
"""What ends a tenant's own questions: the provider looks as if it were down, or refuses the key."""

AT_ONCE = 40


@pytest.mark.parametrize("requests", [160, pytest.param(2_000, marks=pytest.mark.chaos)])
def test_a_hostile_tenant_costs_the_other_no_judged_score(provider: Provider, tmp_path: Path, requests: int) -> None:
    provider.obeys, provider.now = True, time.monotonic
    settings = Settings(
        judge_model="openai/good",
        judge_api_base=provider.base(),
        judge_api_key="none",
        judge_attempts=2,
        judge_deadline=3,
        home=tmp_path,
    )
    database = open_new_store(tmp_path)
    app = create_app(settings, engine=build_engine(settings, database), database=database)
    keys = {tenant: Keys(database).create(name=tenant, tenant=tenant)[1] for tenant in ("hostile", "quiet")}
    half = requests // 2
    cycle = [f"fault-{ANSWERED[n % len(ANSWERED)]}" for n in range(half * 3 // 4)]
    faults = [*cycle, *[f"fault-{BROKEN[n % len(BROKEN)]}" for n in range(half - len(cycle))]]
    seconds: list[float] = []

    async def send(tenant: str, number: int, fault: str, turn: asyncio.Semaphore) -> str:
        asked = json.dumps(body(number) | {"tags": {}}).replace("Refund order", f"{fault} Refund order").encode()

        async with turn:
            begun = time.monotonic()
            answer = await exchange(app, "POST", "/v1/score", asked, bearer(keys[tenant]))
        if tenant == "quiet":
            seconds.append(time.monotonic() - begun)
        outcome = judged(answer.json) if answer.status == 200 else {"kind": str(answer.status)}
        return outcome.get("cause", outcome["kind"])

    async def play() -> tuple[Counter[str], Counter[str]]:
        turns = {tenant: asyncio.Semaphore(AT_ONCE) for tenant in keys}
        async with app.router.lifespan_context(app):
            await send("quiet", -1, "", turns["quiet"])  # loads the library
            seconds.clear()
            hostile = [asyncio.create_task(send("hostile", n, one, turns["hostile"])) for n, one in enumerate(faults)]
            during = await asyncio.gather(*[send("quiet", n, "", turns["quiet"]) for n in range(half // 2)])
            suffered = await asyncio.gather(*hostile)
            after = await asyncio.gather(*[send("quiet", n, "", turns["quiet"]) for n in range(half // 2, half)])
        return Counter(suffered), Counter([*during, *after])

    suffered, told = asyncio.run(play())
    cuts = quantiles(seconds, n=20)
    print(f"hostile {dict(suffered)}; quiet {dict(told)}, median {cuts[9]:.2f} s, p95 {cuts[18]:.2f} s")  # noqa: T201
    assert told == {"scored": half}
    assert suffered["scored"] == 0
