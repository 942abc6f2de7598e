"""What can be wrong with the file of a cache: planted rows, damage, other processes, a full disk, a folder that is none."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from diskcache.core import MODE_BINARY, MODE_PICKLE, MODE_RAW, MODE_TEXT

from service.asking.cache.disk import JOURNAL_MODE, DiskCache
from service.asking.cache.guard import MAX_TEXT_BYTES, CacheCounts, seal_row
from tests.asking.test_cache import Clock, key

ROWS = f"rows-{JOURNAL_MODE}"
TEXT = '{"label":"supported"}'
DAY = 86_400


def opened(folder: Path, **options: float | Clock) -> DiskCache:
    return DiskCache(folder, **{"ttl": DAY, "max_bytes": 2**30, "patience": 30.0, **options})  # type: ignore[arg-type]


def connected(folder: Path, timeout: float = 5.0) -> sqlite3.Connection:
    return sqlite3.connect(folder / ROWS / "cache.db", isolation_level=None, timeout=timeout)


def execute(folder: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(connected(folder)) as connection:
        return connection.execute(sql, values).fetchall()


async def filled(folder: Path, count: int = 1) -> None:
    cache = opened(folder)
    await asyncio.gather(*[cache.set(key(n), text_of(n)) for n in range(count)])
    assert cache.counts == CacheCounts()
    await cache.close()


def text_of(number: int) -> str:
    return json.dumps({"label": "supported", "number": number, "reason": "x" * 200})


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.marker,)


DEEDS: dict[str, Callable[[DiskCache], object]] = {
    "get": lambda cache: cache.get(key(0)),
    "set": lambda cache: cache.set(key(0), TEXT),
}
deeds = pytest.mark.parametrize("deed", DEEDS)


@deeds
@pytest.mark.parametrize("where", ["in the row", "in a file", "as the key"])
def test_a_planted_pickle_runs_nothing(tmp_path: Path, deed: str, where: str) -> None:
    marker, data = tmp_path / "ran", pickle.dumps(Payload(tmp_path / "ran"))
    pickle.loads(data)  # noqa: S301 (this is what must not happen)
    assert marker.exists()
    marker.unlink()

    async def scene() -> None:
        folder = tmp_path / "cache"
        await filled(folder)
        if where == "in the row":
            execute(folder, "UPDATE Cache SET mode = ?, value = ?", MODE_PICKLE, data)
        elif where == "in a file":
            (folder / ROWS / "planted").write_bytes(data)
            execute(folder, "UPDATE Cache SET mode = ?, value = NULL, filename = 'planted'", MODE_PICKLE)
        else:
            execute(folder, "UPDATE Cache SET raw = 0, key = ?", data)
        cache = opened(folder)
        await DEEDS[deed](cache)  # type: ignore[misc]
        assert cache.counts.refused == (deed == "get" and where != "as the key")
        await cache.set(key(0), TEXT)
        assert await cache.get(key(0)) == TEXT
        assert cache.counts.failures == 0
        await cache.close()

    asyncio.run(scene())
    assert not marker.exists()


@deeds
@pytest.mark.parametrize("expired", [False, True], ids=["alive", "expired"])
@pytest.mark.parametrize("mode", [MODE_TEXT, MODE_BINARY])
@pytest.mark.parametrize("absolute", [False, True], ids=["beside", "elsewhere"])
def test_a_planted_file_is_neither_read_nor_deleted(
    tmp_path: Path, deed: str, expired: bool, mode: int, absolute: bool
) -> None:
    folder = tmp_path / "cache"
    planted = tmp_path / "precious" if absolute else folder / ROWS / "precious"

    async def scene() -> None:
        await filled(folder)
        planted.write_text(seal_row(key(0), TEXT))  # whoever reads the file finds a row that is in order
        name = str(planted) if absolute else planted.name
        execute(folder, "UPDATE Cache SET mode = ?, value = NULL, filename = ?", mode, name)
        if expired:
            execute(folder, "UPDATE Cache SET expire_time = 1")
        cache = opened(folder)
        assert await DEEDS[deed](cache) is None  # type: ignore[misc]
        assert cache.counts.failures == 0
        await cache.close()

    asyncio.run(scene())
    assert planted.read_text() == seal_row(key(0), TEXT)


def test_eviction_deletes_no_planted_file(tmp_path: Path) -> None:
    folder, planted = tmp_path / "cache", tmp_path / "precious"

    async def scene() -> None:
        await filled(folder)
        planted.write_text("precious")
        execute(folder, "UPDATE Cache SET value = NULL, filename = ?, mode = ?", str(planted), MODE_TEXT)
        cache = opened(folder, max_bytes=2**16)
        for n in range(1, 9):
            await cache.set(key(n), "x" * 30_000)
        await cache.close()

    asyncio.run(scene())
    assert execute(folder, "SELECT count(*) FROM Cache WHERE filename IS NOT NULL") == [(0,)]
    assert planted.read_text() == "precious"


FOREIGN = [(MODE_RAW, 7), (MODE_RAW, 1.5), (MODE_RAW, b"{}"), (MODE_RAW, None), (7, "x"), (None, "x"), ("x", "x")]


@pytest.mark.parametrize(("mode", "value"), FOREIGN, ids=str)
def test_a_value_of_another_kind_is_refused(tmp_path: Path, mode: object, value: object) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        execute(tmp_path, "UPDATE Cache SET mode = ?, value = ?", mode, value)
        cache = opened(tmp_path)
        assert await cache.get(key(0)) is None
        assert (cache.counts.refused, cache.counts.failures) == (1, 0)
        await cache.close()

    asyncio.run(scene())


def test_a_good_row_that_names_a_file_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        execute(tmp_path, "UPDATE Cache SET filename = 'planted'")
        cache = opened(tmp_path)
        assert await cache.get(key(0)) is None
        assert (cache.counts.refused, cache.counts.failures) == (1, 0)
        await cache.close()

    asyncio.run(scene())


PLANTED_SETTINGS = [
    ("get", "x"),
    ("disk_compress_level", 1),
    ("sqlite_temp_store_directory", "'/tmp'"),
    ("eviction_policy", "none"),
    ("statistics", 1),
    ("size_limit", 0),
    ("cull_limit", -1),
    ("sqlite_mmap_size", 2**30),
    ("disk_min_file_size", 0),
]


@pytest.mark.parametrize(("name", "value"), PLANTED_SETTINGS)
def test_settings_in_the_file_decide_nothing(tmp_path: Path, name: str, value: object) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        execute(tmp_path, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", name, value)
        cache = opened(tmp_path)
        for n in range(20):
            await cache.set(key(n), text_of(n))
        assert [await cache.get(key(n)) for n in range(20)] == [text_of(n) for n in range(20)]
        assert cache.counts.failures == 0
        await cache.close()

    asyncio.run(scene())
    assert all(found.is_file() for found in (tmp_path / ROWS).iterdir())


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)  # noqa: S311


def overwritten(at: float, size: int, seed: int) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        start = int(at * (len(data) - size))
        return data[:start] + noise(size, seed) + data[start + size :]

    return damage


DAMAGE: list[tuple[str, Callable[[bytes], bytes], bool]] = [
    ("a header of garbage", lambda data: noise(100, 0) + data[100:], True),
    ("a first page of garbage", lambda data: data[:100] + noise(3996, 0) + data[4096:], True),
    ("another kind of file", lambda _: b"not a database\n" * 1000, True),
    ("a byte", lambda _: b"x", False),
    ("nothing", lambda _: b"", False),
    ("cut in the header", lambda data: data[:50], False),
    ("cut in a page", lambda data: data[:5000], True),
    ("cut by half", lambda data: data[: len(data) // 2], True),
    ("zeroes", lambda data: bytes(len(data)), False),
    *[(f"12 kB at {at}, {seed}", overwritten(at, 12_000, seed), False) for at in (0.1, 0.5, 1.0) for seed in (1, 2)],
    *[(f"a byte of the text, {seed}", overwritten(seed / 8, 1, seed), False) for seed in range(8)],
]


@pytest.mark.parametrize("running", [False, True], ids=["at the start", "while open"])
@pytest.mark.parametrize(("damage", "aside"), [pytest.param(d, aside, id=name) for name, d, aside in DAMAGE])
def test_damage_is_misses_and_no_wrong_text(
    tmp_path: Path, damage: Callable[[bytes], bytes], aside: bool, running: bool
) -> None:
    count = 120

    async def scene() -> None:
        await filled(tmp_path, count)
        cache = opened(tmp_path, rest=0)
        if running:
            assert await cache.get(key(0)) == text_of(0)
        path = tmp_path / ROWS / "cache.db"
        path.write_bytes(damage(path.read_bytes()))
        for n in range(count):
            assert await cache.get(key(n)) in (text_of(n), None)
        assert cache.counts.moved_aside == 1 or not aside or running
        before = cache.counts.moved_aside
        await asyncio.gather(*[cache.set(key(n), text_of(n + 1)) for n in range(count)])
        found = [await cache.get(key(n)) for n in range(count)]
        assert all(one in (text_of(n + 1), text_of(n), None) for n, one in enumerate(found))
        lost = cache.counts.moved_aside > before  # found only now: what had been kept by then is gone too
        assert lost or cache.counts.failures or None not in found
        assert cache.counts.moved_aside <= 1
        await cache.close()
        again = opened(tmp_path)
        await again.set(key(0), TEXT)
        assert await again.get(key(0)) == TEXT
        assert again.counts.failures == 0
        await again.close()

    asyncio.run(scene())


def test_a_damaged_file_is_kept_aside_until_the_next_one(tmp_path: Path) -> None:
    async def scene() -> None:
        for round_ in range(2):  # the last one damaged replaces the one before
            await filled(tmp_path)
            (tmp_path / ROWS / "cache.db").write_bytes(b"garbage %d" % round_ * 1000)
            cache = opened(tmp_path)
            assert await cache.get(key(0)) is None
            assert (cache.counts.moved_aside, cache.counts.failures) == (1, 0)
            assert (tmp_path / "aside" / "cache.db").read_bytes().startswith(b"garbage %d" % round_)
            await cache.close()

    asyncio.run(scene())


def test_the_database_that_another_process_has_put_in_place_stays(tmp_path: Path) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        one, other = opened(tmp_path), opened(tmp_path)
        assert [await one.get(key(0)), await other.get(key(0))] == [text_of(0)] * 2
        path = tmp_path / ROWS / "cache.db"
        path.write_bytes(noise(path.stat().st_size, 0))
        await one.set(key(1), TEXT)
        assert one.counts.moved_aside == 1
        assert await other.get(key(1)) == TEXT
        assert other.counts.moved_aside == 0
        await one.close()
        await other.close()

    asyncio.run(scene())


@pytest.mark.parametrize("warm", [True, False], ids=["open", "not open"])
def test_a_locked_database_is_a_miss_then_left_alone_then_used_again(tmp_path: Path, warm: bool) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        clock = Clock()
        cache = opened(tmp_path, timeout=0.01, clock=clock, rest=1.0)
        if warm:
            assert await cache.get(key(0)) == text_of(0)
        with closing(connected(tmp_path)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            other.execute("UPDATE Cache SET tag = 'x'")
            await cache.set(key(1), TEXT)
            assert cache.counts.failures == 1
            assert await cache.get(key(0)) is None
            assert cache.counts.failures == 2
        assert await cache.get(key(0)) is None
        clock.now = 1.0
        assert await cache.get(key(0)) == text_of(0)
        await cache.set(key(1), TEXT)
        assert await cache.get(key(1)) == TEXT
        assert (cache.counts.failures, cache.counts.moved_aside) == (2, 0)
        await cache.close()

    asyncio.run(scene())


def test_a_lock_that_is_held_for_a_moment_costs_no_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        cache = DiskCache(tmp_path, ttl=DAY, max_bytes=2**30)
        with closing(connected(tmp_path)) as other:
            other.execute("BEGIN EXCLUSIVE")
            asyncio.get_running_loop().call_later(1.2, other.execute, "ROLLBACK")
            found = await asyncio.gather(cache.set(key(1), TEXT), *[cache.get(key(0)) for _ in range(200)])
        assert found[1:] == [text_of(0)] * 200
        assert await cache.get(key(1)) == TEXT
        assert (cache.counts.failures, cache.trouble) == (0, None)
        await cache.close()

    asyncio.run(scene())


def test_a_row_that_could_not_be_written_is_written_with_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        await filled(tmp_path)
        clock = Clock()
        cache = opened(tmp_path, timeout=0.01, clock=clock)
        with closing(connected(tmp_path)) as other:
            other.execute("BEGIN IMMEDIATE")
            await cache.set(key(1), TEXT)
            await cache.set(key(2), TEXT)
            assert (cache.counts.failures, cache.trouble) == (2, "TimeoutError")
        clock.now = 1.0
        await cache.set(key(3), TEXT)
        assert [await cache.get(key(n)) for n in (1, 2, 3)] == [TEXT] * 3
        assert cache.trouble is None
        await cache.close()

    asyncio.run(scene())


def test_a_commit_that_fails_leaves_nothing_locked(tmp_path: Path) -> None:
    """Without WAL a reader who stays keeps others from committing."""

    async def scene() -> None:
        await filled(tmp_path)
        cache = opened(tmp_path, timeout=0.01, rest=0)
        assert await cache.get(key(0)) == text_of(0)
        with closing(connected(tmp_path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM Cache").fetchall()
            await cache.set(key(1), TEXT)
            assert cache.counts.failures == (JOURNAL_MODE != "wal")
            reader.execute("ROLLBACK")
        with closing(connected(tmp_path, timeout=0)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
        await cache.set(key(2), TEXT)
        assert await cache.get(key(2)) == TEXT
        await cache.close()

    asyncio.run(scene())


def test_the_oldest_rows_go_when_it_is_full_and_no_file_is_made(tmp_path: Path) -> None:
    async def scene() -> None:
        cache = opened(tmp_path, max_bytes=2**20)
        for n in range(100):
            await cache.set(key(n), "x" * MAX_TEXT_BYTES)
        assert (tmp_path / ROWS / "cache.db").stat().st_size <= 2**20 + 2**18
        assert [await cache.get(key(n)) is None for n in (0, 50, 99)] == [True, True, False]
        await cache.close()

    asyncio.run(scene())
    assert {found.name for found in (tmp_path / ROWS).iterdir()} <= {"cache.db", "cache.db-journal"}


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "cache"
    before = os.umask(0)
    try:
        asyncio.run(filled(folder))
        (folder / ROWS / "cache.db").chmod(0o666)
        (folder / ROWS).chmod(0o777)
        asyncio.run(filled(folder))
    finally:
        os.umask(before)
    assert (folder / ROWS).stat().st_mode & 0o777 == 0o700
    assert {found.stat().st_mode & 0o777 for found in (folder / ROWS).iterdir()} == {0o600}


CHILD = """
import asyncio, json, os, resource, signal, sys
from pathlib import Path
from service.asking.cache.disk import DiskCache

folder, deed = Path(sys.argv[1]), sys.argv[2]
cache = DiskCache(folder, ttl=1e6, max_bytes=2**30, patience=30.0, rest=1e9 if deed == "open" else 0)

def limited():
    size = max(found.stat().st_size for found in folder.rglob("cache.db")) if deed == "open" else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    if deed == "open":
        await cache.get("0")
    if deed != "write":
        limited()
    first = await cache.get("0")
    for n in range(100):
        await cache.set(f"{os.getpid()}-{n}", "x" * 10_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    mine = [await cache.get(f"{os.getpid()}-{n}") for n in range(100)]
    await cache.set("later", "x")
    later = await cache.get("later")
    counts = cache.counts
    await cache.close()
    print(json.dumps([first, sum(one is not None for one in mine), later, counts.failures, counts.moved_aside]))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(main())
"""


def child(folder: Path, deed: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", CHILD, str(folder), deed]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


def told(process: subprocess.Popen[str]) -> list[object]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.mark.parametrize(("deed", "first"), [("open", "kept"), ("closed", None), ("fresh", None)])
def test_a_full_disk_is_misses_and_loses_nothing(tmp_path: Path, deed: str, first: str | None) -> None:
    async def scene() -> None:
        cache = opened(tmp_path)
        await cache.set("0", "kept")
        await cache.close()

    if deed != "fresh":
        asyncio.run(scene())
    found, kept, later, failures, aside = told(child(tmp_path, deed))
    assert (found, later, aside) == (first, "x", 0)
    assert kept + failures >= 100  # type: ignore[operator]
    assert failures > 0  # type: ignore[operator]
    if deed != "fresh":
        assert execute(tmp_path, "SELECT count(*) FROM Cache WHERE key = '0'") == [(1,)]


def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    processes = [child(tmp_path, "write") for _ in range(3)]
    for process in processes:
        _, kept, later, failures, aside = told(process)
        assert (kept + failures >= 100, later, aside) == (True, "x", 0)  # type: ignore[operator]


LOAD = """
import asyncio, os, sys
from pathlib import Path
from service.asking.cache.disk import DiskCache

async def main():
    cache, keys = DiskCache(Path(sys.argv[1]), ttl=1e6, max_bytes=2**30), [f"{os.getpid()}-{n}" for n in range(400)]
    await asyncio.gather(*[cache.set(key, "x" * 2_000) for key in keys])
    found = await asyncio.gather(*[cache.get(key) for key in keys])
    await cache.close()
    print(found.count(None), cache.counts.failures)

asyncio.run(main())
"""


def test_under_load_nothing_is_asked_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=120)[0] for process in processes] == ["0 0\n"] * 3


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")

    async def scene() -> None:
        for folder in (tmp_path / "file", tmp_path / "file" / "cache", Path("/proc/none")):
            cache = opened(folder, rest=0)
            await cache.set(key(0), TEXT)
            assert await cache.get(key(0)) is None
            assert (cache.counts.failures, cache.counts.moved_aside) == (2, 0)
            await cache.close()

    asyncio.run(scene())
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who may write nothing")
def test_a_folder_that_may_only_be_read_is_no_cache() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        code = CHILD.replace("asyncio.run(main())", "os.setuid(65534); asyncio.run(main())")
        done = subprocess.run([sys.executable, "-c", code, name, "write"], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)[1:3] == [0, None]
        assert list(folder.iterdir()) == []


def test_a_path_that_diskcache_would_expand_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "elsewhere"))

    async def scene() -> None:
        cache = opened(tmp_path / "$ELSEWHERE")
        await cache.set(key(0), TEXT)
        assert cache.counts.failures == 1
        await cache.close()

    asyncio.run(scene())
    assert list(tmp_path.iterdir()) == []
