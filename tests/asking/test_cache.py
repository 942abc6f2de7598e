"""What a cache promises, on disk and in Redis: the same tests. Then what only Redis can do wrong."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from service.asking.cache.disk import DiskCache
from service.asking.cache.guard import (
    MAX_AT_ONCE,
    MAX_PENDING_ROWS,
    MAX_TEXT_BYTES,
    GuardedCache,
    seal_row,
    unseal_row,
)
from service.asking.cache.shared import PREFIX, RedisCache
from service.errors import SettingsError
from service.settings import Settings
from service.wiring import build_cache
from tests.faults.proxy import Fault, proxied

TEXT = '{"label":"supported"}'
DAY = 86_400


def key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class DiskStore:
    """A cache's rows, as anyone with the file sees them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, **options: Any) -> GuardedCache:
        return DiskCache(self.folder, **{"ttl": DAY, "max_bytes": 2**30, "patience": 30.0, **options})

    def execute(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.folder / "rows" / "cache.db", isolation_level=None)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def read(self, name: str) -> bytes:
        ((value,),) = self.execute("SELECT CAST(value AS BLOB) FROM Cache WHERE key = ?", name)
        return value

    def write(self, name: str, value: bytes) -> None:
        self.execute("UPDATE Cache SET value = CAST(? AS TEXT) WHERE key = ?", value, name)

    def life(self, name: str) -> float:
        ((life,),) = self.execute("SELECT expire_time - store_time FROM Cache WHERE key = ?", name)
        return life

    def expire(self, name: str) -> None:
        self.execute("UPDATE Cache SET expire_time = 1 WHERE key = ?", name)


class RedisStore:
    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"callgrade:test:{secrets.token_hex(8)}:"
        self.client: Redis = Redis.from_url(url)

    def open(self, **options: Any) -> GuardedCache:
        return RedisCache(
            options.pop("url", self.url), **{"ttl": DAY, "prefix": self.prefix, "patience": 30.0, **options}
        )

    def read(self, name: str) -> bytes:
        return self.client.get(self.prefix + name)  # type: ignore[return-value]

    def write(self, name: str, value: bytes) -> None:
        self.client.set(self.prefix + name, value)

    def life(self, name: str) -> float:
        return self.client.pttl(self.prefix + name) / 1000  # type: ignore[operator]

    def expire(self, name: str) -> None:
        self.client.delete(self.prefix + name)


Store = DiskStore | RedisStore


@asynccontextmanager
async def opened(store: Store, **options: Any) -> AsyncIterator[GuardedCache]:
    cache = store.open(**options)
    yield cache
    await cache.close()


async def keep(cache: GuardedCache, name: str, text: str) -> None:
    cache.set(name, text)
    await cache.flush()


@pytest.fixture
def redis_store(redis_url: str) -> Generator[RedisStore]:
    store = RedisStore(redis_url)
    yield store
    for name in store.client.scan_iter(f"{store.prefix}*", count=1000):
        store.client.delete(name)
    store.client.close()


@pytest.fixture(params=["disk", pytest.param("redis", marks=pytest.mark.needs_redis)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return DiskStore(tmp_path / "cache") if request.param == "disk" else request.getfixturevalue("redis_store")


@pytest.fixture
def run(store: Store) -> Callable[..., None]:
    """Runs a scene with a cache over the store, and closes the cache."""

    def play(scene: Callable[[GuardedCache], Any], **options: Any) -> None:
        async def within() -> None:
            async with opened(store, **options) as cache:
                await scene(cache)

        asyncio.run(within())

    return play


Run = Callable[..., None]


def test_a_text_is_found_at_once_and_by_others_once_it_is_written(store: Store, run: Run) -> None:
    async def scene(cache: GuardedCache) -> None:
        async with opened(store) as other:
            assert await cache.get(key(1)) is None
            cache.set(key(1), TEXT)
            assert await cache.get(key(1)) == TEXT
            await cache.flush()
            assert await cache.get(key(1)) == await other.get(key(1)) == TEXT
            other.set(key(1), "{}")
        assert await cache.get(key(1)) == "{}", "closing writes what waits"
        assert (cache.counts.hits, cache.counts.misses, cache.counts.failures) == (3, 1, 0)

    run(scene)


KEPT = [
    ("", "empty"),
    ("null", "null"),
    ("\x00a\x00", "a NUL"),
    ('{"a":"é漢🎉"}', "beyond ASCII"),
    ("a\r\nb\n", "line ends"),
    ("x" * MAX_TEXT_BYTES, "the most"),
    ("漢" * (MAX_TEXT_BYTES // 3), "the most, of three bytes each"),
]
NOT_KEPT = [
    ("x" * (MAX_TEXT_BYTES + 1), "too_large"),
    ("漢" * (MAX_TEXT_BYTES // 3 + 1), "too_large"),
    ("\ud800", "failures"),
]


def test_a_text_comes_back_as_it_was(store: Store, run: Run) -> None:
    async def scene(cache: GuardedCache) -> None:
        for text, name in KEPT:
            await keep(cache, key(name), text)
            assert await cache.get(key(name)) == text, name

    run(scene)


def test_what_cannot_be_kept_leaves_what_was_there_and_is_counted(run: Run) -> None:
    async def scene(cache: GuardedCache) -> None:
        await keep(cache, key(1), TEXT)
        for text, count in NOT_KEPT:
            before = getattr(cache.counts, count)
            await keep(cache, key(1), text)
            assert await cache.get(key(1)) == TEXT
            assert getattr(cache.counts, count) == before + 1

    run(scene)


def flipped(row: bytes, at: int) -> bytes:
    return row[:at] + bytes([row[at] ^ 1]) + row[at + 1 :]


ROT: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("a flipped bit of the text", lambda row: flipped(row, len(row) - 3)),
    ("a flipped bit of the seal", lambda row: flipped(row, 0)),
    ("half a row", lambda row: row[: len(row) // 2]),
    ("less than a seal", lambda row: row[:10]),
    ("a row and more", lambda row: row + b" "),
    ("bytes that are not UTF-8", lambda row: row[:-1] + b"\xff"),
    ("the text alone", lambda row: row[64:]),
    ("the seal of a text without its key", lambda row: hashlib.sha256(row[64:]).hexdigest().encode() + row[64:]),
    ("a row longer than ours can be", lambda row: row * 2000),
    ("the row of another key", lambda _: seal_row(key("another"), TEXT).encode()),
]


@pytest.mark.parametrize("rot", [pytest.param(rot, id=name) for name, rot in ROT])
def test_a_row_that_is_not_what_we_wrote_is_a_miss_until_it_is_replaced(
    store: Store, run: Run, rot: Callable[[bytes], bytes]
) -> None:
    async def scene(cache: GuardedCache) -> None:
        await keep(cache, key(1), TEXT)
        store.write(key(1), rot(store.read(key(1))))
        assert await cache.get(key(1)) is None
        assert (cache.counts.refused, cache.counts.misses, cache.counts.failures) == (1, 1, 0)
        await keep(cache, key(1), TEXT)
        assert await cache.get(key(1)) == TEXT

    run(scene, rest=1e9)


@given(st.text(max_size=20), st.text(max_size=50), st.text(max_size=20), st.text(max_size=50))
def test_a_seal_fits_its_key_and_text_alone(one: str, text: str, other: str, more: str) -> None:
    assert unseal_row(one, seal_row(one, text)) == text
    if (one, text) != (other, more):
        assert unseal_row(other, seal_row(one, text)[:64] + more) is None


def test_rows_have_the_life_that_was_asked_for(store: Store, run: Run) -> None:
    async def scene(cache: GuardedCache) -> None:
        await keep(cache, key(1), TEXT)
        assert 900 < store.life(key(1)) <= 1000.001
        store.expire(key(1))
        assert await cache.get(key(1)) is None

    run(scene, ttl=1000)


def test_who_is_cancelled_is_cancelled_and_no_answer_reaches_another(run: Run) -> None:
    async def scene(cache: GuardedCache) -> None:
        for n in range(500):
            cache.set(key(n), f"{n}")
        await cache.flush()
        asking = [asyncio.create_task(cache.get(key(n))) for n in range(100)]
        for turn in range(0, 100, 2):
            await asyncio.sleep(0)
            asking[turn].cancel()
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) or one == f"{n}" for n, one in enumerate(found))
        assert any(isinstance(one, asyncio.CancelledError) for one in found)
        assert found[1::2] == [f"{n}" for n in range(1, 100, 2)]
        assert await asyncio.gather(*[cache.get(key(n)) for n in range(500)]) == [f"{n}" for n in range(500)]
        assert (cache.counts.refused, cache.counts.failures) == (0, 0)

    run(scene)


def test_a_closed_cache_is_all_misses(run: Run) -> None:
    async def scene(cache: GuardedCache) -> None:
        cache.set(key(1), TEXT)
        await cache.close()
        assert await cache.get(key(1)) is None

    run(scene)


class Stuck(GuardedCache):
    """A store that takes no rows until it is `open`."""

    open = False
    meanwhile: Callable[[], None] | None = None
    """What happens while rows are written, once."""

    async def read_row(self, _: str) -> str | None:
        return None

    async def write_rows(self, rows: Any) -> None:
        if not self.open:
            raise OSError("no room")
        self.rows = dict(rows)
        happens, self.meanwhile = self.meanwhile, None
        if happens:
            happens()

    async def release(self) -> None:
        raise OSError("stuck")


def test_what_is_not_written_waits_and_the_oldest_is_given_up() -> None:
    async def scene() -> None:
        clock = Clock()
        cache = Stuck("here", patience=1.0, clock=clock)
        for n in range(MAX_PENDING_ROWS + 1):
            cache.set(key(n), TEXT)
            await cache.flush()
        assert cache.counts.failures == 2, "one try that failed, one row that was given up"
        assert [await cache.get(key(n)) for n in (0, 1)] == [None, TEXT]
        cache.open, clock.now = True, 1.0
        await cache.flush()
        assert cache.trouble is None
        assert cache.rows[key(MAX_PENDING_ROWS)]
        cache.meanwhile = lambda: cache.set(key(1), "{}")
        await keep(cache, key(1), TEXT)
        assert cache.rows == {key(1): seal_row(key(1), "{}")}, (
            "what replaces a row that is being written is written too"
        )
        await cache.close()
        assert cache.trouble == "OSError"

    asyncio.run(scene())


class Counting(Stuck):
    """A store that notes how many look-ups are under way at once."""

    under_way = most = 0

    async def read_row(self, _: str) -> str | None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return None


def test_so_many_are_looked_up_at_once_that_waiting_for_a_turn_is_no_failure() -> None:
    async def scene() -> None:
        cache = Counting("here", patience=60.0)
        await asyncio.gather(*[cache.get(key(n)) for n in range(4 * MAX_AT_ONCE)])
        assert (cache.most, cache.counts.misses, cache.counts.failures) == (MAX_AT_ONCE, 4 * MAX_AT_ONCE, 0)

    asyncio.run(scene())


@pytest.mark.needs_redis
def test_a_key_that_holds_no_string_is_refused_and_replaced(redis_store: RedisStore) -> None:
    redis_store.client.rpush(redis_store.prefix + key(1), "a", "list")

    async def scene() -> None:
        async with opened(redis_store, rest=1e9) as cache:
            assert await cache.get(key(1)) is None
            assert (cache.counts.refused, cache.counts.failures) == (1, 0)
            await keep(cache, key(1), TEXT)
            assert await cache.get(key(1)) == TEXT

    asyncio.run(scene())


@pytest.mark.needs_redis
@pytest.mark.parametrize("connected", [True, False], ids=["connected", "not connected"])
@pytest.mark.parametrize("fault", ["hang", "lose"])
def test_a_redis_that_fails_is_a_miss_then_left_alone_then_tried_again(
    redis_store: RedisStore, fault: Fault, connected: bool
) -> None:
    async def scene() -> None:
        clock = Clock()
        there = urlsplit(redis_store.url)
        with proxied(there.hostname or "", there.port or 6379) as between:
            url = redis_store.url.replace(f":{there.port}", f":{between.port}")
            other, cache = redis_store.open(), redis_store.open(url=url, clock=clock, rest=1.0, patience=0.5)
            await keep(other, key(1), TEXT)
            if connected:
                assert await cache.get(key(1)) == TEXT
            between.fault = fault
            assert await asyncio.gather(*[cache.get(key(1)) for _ in range(20)]) == [None] * 20
            await keep(cache, key(2), "{}")
            assert cache.counts.failures == 21
            asked, clock.now = between.asked, 0.99
            assert await cache.get(key(1)) is None
            await keep(cache, key(3), "{}")
            assert (between.asked, cache.counts.failures) == (asked, 21)
            between.fault, clock.now = "", 1.0
            assert await cache.get(key(1)) == TEXT
            await cache.flush()
            assert [await other.get(key(n)) for n in (2, 3)] == ["{}", "{}"]
            assert (cache.counts.refused, cache.counts.misses) == (0, 21)
            await cache.close()
            await other.close()

    asyncio.run(scene())


def test_a_redis_that_refuses_is_a_miss_and_its_password_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]

    async def scene() -> None:
        cache = RedisCache(f"redis://user:canary@127.0.0.1:{port}/?password=canary", ttl=DAY, rest=0)
        for n in range(3):
            assert await cache.get(key("absent")) is None
            await keep(cache, key(n), TEXT)
        assert cache.counts.failures == 6
        assert "canary" not in cache.place
        await cache.close()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    assert "the cache at redis://127.0.0.1:" in caplog.text
    assert "canary" not in caplog.text
    assert caplog.text.count("the cache at") == 1


@pytest.mark.needs_redis
def test_a_redis_that_takes_no_rows_is_still_read(redis_store: RedisStore) -> None:
    """As one that is full, or a replica; here the user may not write."""
    user, password = f"reader-{secrets.token_hex(4)}", secrets.token_hex(8)
    redis_store.client.acl_setuser(user, enabled=True, passwords=[f"+{password}"], keys=["*"], commands=["+@read"])
    host = urlsplit(redis_store.url)
    url = f"redis://{user}:{password}@{host.netloc.rpartition('@')[2]}{host.path}"

    async def scene() -> None:
        async with opened(redis_store) as writer:
            writer.set(key(1), TEXT)
        async with opened(redis_store, url=url, rest=1e9) as cache:
            await keep(cache, key(2), "{}")
            assert cache.counts.failures == 1
            assert await cache.get(key(1)) == TEXT

    try:
        asyncio.run(scene())
    finally:
        redis_store.client.acl_deluser(user)


def test_the_settings_choose_the_cache(tmp_path: Path) -> None:
    disk = build_cache(Settings(home=tmp_path))
    assert isinstance(disk, DiskCache)
    assert disk.place == str(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    shared = build_cache(Settings(home=tmp_path, cache_url="redis://cache.internal:1234/5"))
    assert isinstance(shared, RedisCache)
    assert (shared.place, PREFIX) == ("redis://cache.internal:1234/5", "callgrade:1:")
    with pytest.raises(SettingsError, match="CALLGRADE_CACHE_URL"):
        build_cache(Settings(home=tmp_path, cache_url="redis://cache.internal?socket_timeout=canary"))
