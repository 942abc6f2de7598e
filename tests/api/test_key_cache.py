"""How long a key is remembered, how its use is noted, and where a request has it."""

from __future__ import annotations

import asyncio
from queue import SimpleQueue

import pytest

from service.api.key_cache import FRESH_S, KeyCache, find_peer, read_key
from service.errors import BusyError
from service.store.access.keys import USE_S, Caller
from tests.conftest import Run
from tests.faults.clock import Clock


class Store:
    """Keys that are counted when they are asked for; good ones belong to a tenant of their own name."""

    def __init__(self, *good: str) -> None:
        self.good = set(good)
        self.asked: list[str] = []
        self.noted = SimpleQueue[str]()
        self.broken = self.broken_use = False

    def any_key(self) -> bool:
        self.asked.append("any")
        return bool(self.good)

    def authenticate(self, text: str) -> Caller | None:
        self.asked.append(text)
        if self.broken:
            raise BusyError("the database cannot be reached")
        return Caller(text, text, frozenset({"score"})) if text in self.good else None

    def note_use(self, key_id: str) -> None:
        self.noted.put(key_id)
        if self.broken_use:
            raise BusyError("the database cannot be reached")


@pytest.mark.parametrize(("after", "asked"), [(0.0, 1), (FRESH_S - 0.1, 1), (FRESH_S, 2)])
def test_a_key_is_remembered_for_a_moment(clock: Clock, run: Run, after: float, asked: int) -> None:
    held = Store("a")
    callers = KeyCache(held, now=clock.now)
    first = run(callers.authenticate("a"))
    clock.time += after
    assert run(callers.authenticate("a")) == first
    assert held.asked == ["a"] * asked


def test_those_who_come_at_once_with_one_key_ask_once(clock: Clock, run: Run) -> None:
    held = Store("a")
    callers = KeyCache(held, now=clock.now)

    async def together() -> list[Caller | None]:
        return await asyncio.gather(*[callers.authenticate("a") for _ in range(100)])

    assert {one and one.tenant for one in run(together())} == {"a"}
    assert held.asked == ["a"]


def test_a_store_that_fails_refuses_nobody_and_makes_no_key_a_wrong_one(clock: Clock, run: Run) -> None:
    held = Store("a")
    held.broken = True
    callers = KeyCache(held, now=clock.now)
    for n in range(50):
        with pytest.raises(BusyError):
            run(callers.authenticate(f"{n}"))
    held.broken = False
    for held.broken_use in (True, False):
        assert isinstance(run(callers.authenticate("a")), Caller)
        assert held.noted.get(timeout=60) == "a"
        clock.time += USE_S


def test_a_door_that_has_closed_stays_closed(clock: Clock, run: Run) -> None:
    held = Store()
    callers = KeyCache(held, now=clock.now)
    assert [run(callers.any_key()) for _ in range(3)] == [False] * 3
    for held.good in ({"a"}, set[str]()):
        clock.time += FRESH_S
        assert run(callers.any_key()) is True
    assert held.asked == ["any"] * 2


HEADERS = [
    ([], None),
    ([(b"authorization", b"Bearer a")], "a"),
    ([(b"authorization", b"BEARER a b")], "a b"),
    ([(b"authorization", b"Bearer")], ""),
    ([(b"x-api-key", b" a ")], "a"),
    ([(b"x-api-key", b"a"), (b"x-api-key", b"a")], "a"),
    ([(b"x-api-key", b"a"), (b"x-api-key", b"b")], ""),
    ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")], ""),
]


@pytest.mark.parametrize(("headers", "key"), HEADERS)
def test_the_key_of_a_request(headers: list[tuple[bytes, bytes]], key: str | None) -> None:
    assert read_key(headers) == key


PEERS = [
    (("192.0.2.1", 1), "192.0.2.1"),
    (("2001:db8::1", 1), "2001:db8::"),
    (("2001:db8::ffff:1", 1), "2001:db8::"),
    (("2001:db8:0:1::1", 1), "2001:db8:0:1::"),
    (("testclient", 1), "testclient"),
    (None, ""),
]


@pytest.mark.parametrize(("client", "peer"), PEERS)
def test_an_address_of_ipv6_is_its_network(client: tuple[str, int] | None, peer: str) -> None:
    assert find_peer({"client": client}) == peer
