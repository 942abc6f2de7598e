"""`callgrade cache`: what it says of a cache, on disk and in Redis, and of one that cannot be used."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from service.settings import Settings
from service.wiring import build_cache
from tests.cli.cli_run import Run

TEXT = '{"label":"supported"}'


def keep(count: int) -> Path:
    """Keeps some judgements in the cache of the command's home; where that is."""
    settings = Settings.from_env(os.environ)

    async def scene() -> None:
        cache = build_cache(settings)
        for n in range(count):
            await cache.set(f"{n:064x}", TEXT)
        await cache.close()

    asyncio.run(scene())
    return settings.home / "cache"


def test_stats_of_a_cache_on_disk(run: Run) -> None:
    place = keep(3)
    ran = run("cache", "stats", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert (found["place"], found["rows"], found["failures"]) == (str(place), 3, 0)
    table = run("cache", "stats")
    assert [line.split()[0] for line in table.lines if not line.startswith(" ")] == ["place", "judgements", "bytes"]
    assert "judgements  3" in table.out


def test_a_cache_that_was_never_used_is_empty(run: Run) -> None:
    assert json.loads(run("cache", "stats", "-f", "json").out)["rows"] == 0


def test_prune_keeps_what_is_good_and_clear_keeps_nothing(run: Run) -> None:
    keep(2)
    assert run("cache", "prune").out == "0 judgements removed\n"
    assert run("cache", "clear").out == "2 judgements removed\n"
    keep(1)
    assert run("cache", "clear").out == "1 judgement removed\n"


def test_a_damaged_file_is_moved_aside_and_told(run: Run) -> None:
    (database,) = keep(1).rglob("cache.db")
    database.write_bytes(b"garbage" * 1000)
    ran = run("cache", "stats")
    assert ran.code == 0
    assert "damaged files moved aside  1" in ran.out


@pytest.mark.parametrize("command", ["stats", "clear"])
def test_a_redis_that_is_not_there_is_a_fault_of_the_settings_without_its_password(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    monkeypatch.setenv("CALLGRADE_CACHE_URL", f"redis://user:canary@127.0.0.1:{port}")
    ran = run("cache", command)
    assert (ran.code, ran.out) == (4, "")
    assert f"error: CALLGRADE_CACHE_URL: the cache at redis://127.0.0.1:{port} cannot be used\n" in ran.err
    assert "canary" not in ran.err


def test_a_home_that_is_no_folder_is_a_fault_of_the_settings(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CALLGRADE_HOME", str(tmp_path / "file"))
    ran = run("cache", "clear")
    assert (ran.code, ran.out) == (4, "")
    assert "error: CALLGRADE_HOME: the cache at " in ran.err


@pytest.mark.needs_redis
def test_stats_of_a_shared_cache(redis_url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLGRADE_CACHE_URL", redis_url)
    ran = run("cache", "stats", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["place"].startswith("redis://")
    assert run("cache", "prune").out == "0 judgements removed\n"
