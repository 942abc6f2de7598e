"""What can be wrong with the file of a cache: planted rows, damage, other processes, a full disk, a folder that is none."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from diskcache.core import MODE_BINARY, MODE_PICKLE, MODE_RAW, MODE_TEXT

from service.asking.cache.disk import DiskCache
from service.asking.cache.guard import MAX_TEXT_BYTES, CacheCounts, seal_row
from tests.asking.test_cache import DAY, TEXT, Clock, keep, key

Scene = Callable[[DiskCache], Coroutine[None, None, None]]


def opened(folder: Path, **options: Any) -> DiskCache:
    return DiskCache(folder, **{"ttl": DAY, "max_bytes": 2**30, "patience": 30.0, **options})


def connected(folder: Path, timeout: float = 5.0) -> sqlite3.Connection:
    return sqlite3.connect(folder / "rows" / "cache.db", isolation_level=None, timeout=timeout)


def execute(folder: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(connected(folder)) as connection:
        return connection.execute(sql, values).fetchall()


def text_of(number: int) -> str:
    return json.dumps({"label": "supported", "number": number, "reason": "x" * 200})


def fill(folder: Path, count: int = 1) -> None:
    async def scene() -> None:
        cache = opened(folder)
        for n in range(count):
            cache.set(key(n), text_of(n))
        await cache.close()
        assert cache.counts == CacheCounts()

    asyncio.run(scene())


def play(folder: Path, scene: Scene, **options: Any) -> None:
    async def within() -> None:
        cache = opened(folder, **options)
        await scene(cache)
        await cache.close()

    asyncio.run(within())


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.marker,)


PICKLE = "a pickle"
PLANTED: list[tuple[str, dict[str, object], bool]] = [
    ("a pickle in the row", {"mode": MODE_PICKLE, "value": PICKLE}, True),
    ("a pickle in a file", {"mode": MODE_PICKLE, "value": None, "filename": "pickled"}, True),
    ("a pickle as the key", {"raw": 0, "key": PICKLE}, False),
    ("a text in a file", {"mode": MODE_TEXT, "value": None, "filename": "precious"}, True),
    ("bytes in a file", {"mode": MODE_BINARY, "value": None, "filename": "precious"}, True),
    ("a text in a file elsewhere", {"mode": MODE_TEXT, "value": None, "filename": "{elsewhere}"}, True),
    ("a good row that names a file", {"filename": "precious"}, True),
    ("an expired row that names a file", {"filename": "{elsewhere}", "expire_time": 1}, False),
    *[
        (f"{mode} {value}", {"mode": mode, "value": value}, True)
        for mode, value in [(MODE_RAW, 7), (MODE_RAW, b"{}"), (MODE_RAW, None), (7, "x"), (None, "x"), ("x", "x")]
    ],
]


@pytest.mark.parametrize("first", ["get", "set", "evict"])
@pytest.mark.parametrize(("row", "refused"), [pytest.param(row, told, id=name) for name, row, told in PLANTED])
def test_a_planted_row_runs_nothing_reads_nothing_and_deletes_nothing(
    tmp_path: Path, row: dict[str, object], refused: bool, first: str
) -> None:
    folder, elsewhere, marker = tmp_path / "cache", tmp_path / "precious", tmp_path / "ran"
    beside, data = folder / "rows" / "precious", pickle.dumps(Payload(marker))
    fill(folder)
    for file in (elsewhere, beside):
        file.write_text(seal_row(key(0), TEXT))  # whoever reads the file finds a row that is in order
    (folder / "rows" / "pickled").write_bytes(data)
    values = [data if one == PICKLE else str(elsewhere) if one == "{elsewhere}" else one for one in row.values()]
    execute(folder, f"UPDATE Cache SET {', '.join(f'{name} = ?' for name in row)}", *values)  # noqa: S608

    async def scene(cache: DiskCache) -> None:
        if first == "get":
            assert await cache.get(key(0)) is None
            assert cache.counts.refused == refused
        for n in range(1, 9 if first == "evict" else 1):
            await keep(cache, key(n), "x" * 30_000)
        await keep(cache, key(0), TEXT)
        assert await cache.get(key(0)) == TEXT
        assert cache.counts.failures == 0

    play(folder, scene, max_bytes=2**16 if first == "evict" else 2**30)
    assert not marker.exists()
    assert {file.read_text() for file in (elsewhere, beside)} == {seal_row(key(0), TEXT)}


def test_a_row_that_is_no_text_costs_only_itself(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    execute(tmp_path, "UPDATE Cache SET value = CAST(x'ff' AS TEXT) WHERE key = ?", key(1))

    async def scene(cache: DiskCache) -> None:
        assert await asyncio.gather(*[cache.get(key(n)) for n in range(3)]) == [text_of(0), None, text_of(2)]
        assert (cache.counts.refused, cache.counts.failures) == (1, 0)

    play(tmp_path, scene)


PLANTED_SETTINGS = [
    ("sqlite_temp_store_directory", "'/tmp'"),
    ("eviction_policy", "none"),
    ("statistics", 1),
    ("size_limit", 0),
    ("cull_limit", -1),
    ("sqlite_mmap_size", 2**30),
    ("disk_min_file_size", 0),
]


def test_settings_in_the_file_decide_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    for name, value in PLANTED_SETTINGS:
        execute(tmp_path, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", name, value)

    async def scene(cache: DiskCache) -> None:
        for n in range(20):
            await keep(cache, key(n), text_of(n))
        assert [await cache.get(key(n)) for n in range(20)] == [text_of(n) for n in range(20)]
        assert cache.counts.failures == 0

    play(tmp_path, scene)
    assert all(found.is_file() for found in (tmp_path / "rows").iterdir())


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
    count, path = 120, tmp_path / "rows" / "cache.db"
    fill(tmp_path, count)

    async def scene(cache: DiskCache) -> None:
        if running:
            assert await cache.get(key(0)) == text_of(0)
        path.write_bytes(damage(path.read_bytes()))
        for n in range(count):
            assert await cache.get(key(n)) in (text_of(n), None)
        assert cache.counts.moved_aside == 1 or not aside or running
        before = cache.counts.moved_aside
        for n in range(count):
            cache.set(key(n), text_of(n + 1))
        await cache.flush()
        found = [await cache.get(key(n)) for n in range(count)]
        assert all(one in (text_of(n + 1), text_of(n), None) for n, one in enumerate(found))
        lost = cache.counts.moved_aside > before  # found only now: what had been kept by then is gone too
        assert lost or cache.counts.failures or None not in found
        assert cache.counts.moved_aside <= 1

    async def later(cache: DiskCache) -> None:
        await keep(cache, key(0), TEXT)
        assert await cache.get(key(0)) == TEXT
        assert cache.counts.failures == 0

    play(tmp_path, scene, rest=0)
    play(tmp_path, later)


def test_a_damaged_file_is_kept_aside_until_the_next_one(tmp_path: Path) -> None:
    async def scene(cache: DiskCache) -> None:
        assert await cache.get(key(0)) is None
        assert (cache.counts.moved_aside, cache.counts.failures) == (1, 0)

    for turn in range(2):  # the last one damaged replaces the one before
        fill(tmp_path)
        (tmp_path / "rows" / "cache.db").write_bytes(b"garbage %d" % turn * 1000)
        play(tmp_path, scene)
        assert (tmp_path / "aside" / "cache.db").read_bytes().startswith(b"garbage %d" % turn)


def test_the_database_that_another_process_has_put_in_place_stays(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "rows" / "cache.db"

    async def scene(one: DiskCache) -> None:
        other = opened(tmp_path)
        assert [await one.get(key(0)), await other.get(key(0))] == [text_of(0)] * 2
        path.write_bytes(noise(path.stat().st_size, 0))
        await keep(one, key(1), TEXT)
        assert await other.get(key(1)) == TEXT
        assert (one.counts.moved_aside, other.counts.moved_aside) == (1, 0)
        await other.close()

    play(tmp_path, scene)


def test_a_locked_database_is_a_miss_then_left_alone_then_used_again(tmp_path: Path) -> None:
    fill(tmp_path)
    clock = Clock()

    async def scene(cache: DiskCache) -> None:
        assert await cache.get(key(0)) == text_of(0)
        with closing(connected(tmp_path)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await keep(cache, key(1), TEXT)
            assert await cache.get(key(0)) is None
            assert (cache.counts.failures, cache.trouble) == (2, "OperationalError")
            other.execute("ROLLBACK")
        assert await cache.get(key(0)) is None
        clock.now = 1.0
        assert await cache.get(key(0)) == text_of(0)
        await keep(cache, key(2), TEXT)  # and with it the one before
        assert execute(tmp_path, "SELECT count(*) FROM Cache") == [(3,)]
        assert (cache.counts.failures, cache.counts.moved_aside, cache.trouble) == (2, 0, None)

    play(tmp_path, scene, timeout=0.01, clock=clock)


def test_a_lock_that_is_held_for_a_moment_costs_no_answer(tmp_path: Path) -> None:
    fill(tmp_path)

    async def scene(cache: DiskCache) -> None:
        with closing(connected(tmp_path)) as other:
            other.execute("BEGIN EXCLUSIVE")
            asyncio.get_running_loop().call_later(1.2, other.execute, "ROLLBACK")
            found = await asyncio.gather(keep(cache, key(1), TEXT), *[cache.get(key(0)) for _ in range(200)])
        assert found[1:] == [text_of(0)] * 200
        assert (cache.counts.failures, cache.trouble) == (0, None)

    play(tmp_path, scene, patience=5.0)


def test_a_commit_that_fails_leaves_nothing_locked(tmp_path: Path) -> None:
    """A reader who stays keeps others from committing."""
    fill(tmp_path)

    async def scene(cache: DiskCache) -> None:
        assert await cache.get(key(0)) == text_of(0)
        with closing(connected(tmp_path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM Cache").fetchall()
            await keep(cache, key(1), TEXT)
            assert cache.counts.failures == 1
            reader.execute("ROLLBACK")
        with closing(connected(tmp_path, timeout=0)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
        await keep(cache, key(2), TEXT)
        assert cache.counts.failures == 1

    play(tmp_path, scene, timeout=0.01, rest=0)


def test_the_oldest_rows_go_when_it_is_full_and_no_file_is_made(tmp_path: Path) -> None:
    async def scene(cache: DiskCache) -> None:
        for n in range(100):
            await keep(cache, key(n), "x" * MAX_TEXT_BYTES)
        assert (tmp_path / "rows" / "cache.db").stat().st_size <= 2**20 + 2**18
        assert [await cache.get(key(n)) is None for n in (0, 50, 99)] == [True, True, False]

    play(tmp_path, scene, max_bytes=2**20)
    assert {found.name for found in (tmp_path / "rows").iterdir()} <= {"cache.db", "cache.db-journal"}


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    rows = tmp_path / "home" / "cache" / "rows"
    for _ in range(2):
        fill(rows.parent)
        assert rows.stat().st_mode & 0o777 == 0o700
        rows.chmod(0o777)


CHILD = """
import asyncio, json, os, resource, signal, sys
from pathlib import Path
from service.asking.cache.disk import DiskCache

folder, deed = Path(sys.argv[1]), sys.argv[2]
cache = DiskCache(folder, ttl=1e6, max_bytes=2**30, timeout=100.0, patience=110.0, rest=0)

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    if deed == "open":
        await cache.get("0")
    if deed != "write":
        limit(max(found.stat().st_size for found in folder.rglob("cache.db")) if deed == "open" else 0)
    first = await cache.get("0")
    for n in range(100):
        cache.set(f"{os.getpid()}-{n}", "x" * 10_000)
        await cache.flush()
    limit(resource.RLIM_INFINITY)
    failures = cache.counts.failures
    await cache.close()
    print(json.dumps([first, failures > 0, cache.counts.failures == failures, cache.counts.moved_aside]))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(main())
"""


def child(folder: Path, deed: str, code: str = CHILD) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", code, str(folder), deed]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> list[object]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.mark.parametrize(("deed", "first"), [("open", "kept"), ("closed", None), ("fresh", None)])
def test_a_full_disk_is_misses_and_what_waited_is_written_when_there_is_room(
    tmp_path: Path, deed: str, first: str | None
) -> None:
    if deed != "fresh":
        play(tmp_path, lambda cache: keep(cache, "0", "kept"))
    assert told(child(tmp_path, deed)) == [first, True, True, 0]
    assert execute(tmp_path, "SELECT count(*) FROM Cache") == [(100 if deed == "fresh" else 101,)]


def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    processes = [child(tmp_path, "write") for _ in range(3)]
    assert [told(process) for process in processes] == [[None, False, True, 0]] * 3
    assert execute(tmp_path, "SELECT count(*) FROM Cache") == [(300,)]


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")

    async def scene(cache: DiskCache) -> None:
        await keep(cache, key(0), TEXT)
        assert await cache.get(key(1)) is None
        assert (cache.counts.failures, cache.counts.moved_aside) == (2, 0)

    for folder in (tmp_path / "file", tmp_path / "file" / "cache", Path("/proc/none")):
        play(folder, scene, rest=0)
    assert (tmp_path / "file").read_text() == "precious"
    with tempfile.TemporaryDirectory() as name:  # one that may only be read
        Path(name).chmod(0o755)
        code = CHILD.replace("asyncio.run(main())", "os.getuid() or os.setuid(65534); asyncio.run(main())")
        assert told(child(Path(name), "write", code))[:2] == [None, True]
        assert list(Path(name).iterdir()) == []
