"""Uploads wait on the temporary disk: what one tenant takes of it, others still find."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from shutil import disk_usage

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.settings import Settings
from service.store.database import Database
from tests.api.asgi_caller import LINES, Answer, exchange
from tests.faults.disk import small

MB = 2**20
ONE, OTHER = "127.0.0.1", "127.0.0.2"


def lines(size: int) -> bytes:
    """A batch of so many bytes, which deflate to half."""
    chance = Random(0)  # noqa: S311
    trace = {
        "format": "openai",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    }
    return b"".join(
        json.dumps({"trace": trace, "tags": {"noise": chance.randbytes(5_000).hex()}}).encode() + b"\n"
        for _ in range(size // 10_100)
    )


async def send(app: FastAPI, size: int, client: str, path: str = "/v1/batches") -> Answer:
    return await exchange(app, "POST", path, lines(size), LINES, client=client)


@asynccontextmanager
async def under_way(app: FastAPI, size: int, client: str) -> AsyncGenerator[asyncio.Task[Answer]]:
    """An upload that has sent so many bytes, all written, and does not end; its sender leaves at the end of the block."""
    sent, parts = asyncio.Event(), iter([lines(size)])

    async def chunks() -> tuple[bytes, bool]:
        for part in parts:
            return part, True
        sent.set()
        return await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(exchange(app, "POST", "/v1/batches", chunks, LINES, client=client))
    waiting = asyncio.create_task(sent.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    yield task
    for one in (task, waiting):
        one.cancel()
    await asyncio.gather(task, waiting, return_exceptions=True)


def test_one_tenants_uploads_leave_room_for_others(store: Database) -> None:
    app = create_app(Settings(max_uploads_bytes=8 * MB), database=store)

    async def scene() -> None:
        too_large = await send(app, 5 * MB, ONE)
        assert (too_large.status, "CALLGRADE_MAX_UPLOADS_BYTES" in too_large.problem["detail"]) == (413, True)
        async with under_way(app, 3 * MB, ONE):
            for path in ("/v1/batches", "/v1/labels/import"):
                more = await send(app, 2 * MB, ONE, path)
                assert (more.status, more.headers["retry-after"]) == (429, "1"), more.body
                assert "your uploads hold 3" in more.problem["detail"]
            assert (await send(app, MB, OTHER)).status == 202
        assert (await send(app, 2 * MB, ONE)).status == 202

    asyncio.run(scene())


def test_a_chunk_that_finds_no_room_spoils_no_item(store: Database) -> None:
    app = create_app(Settings(max_uploads_bytes=4 * MB, batch_chunk=1), database=store)
    answer = asyncio.run(send(app, 2 * MB - 20_000, ONE))  # its chunks come on top
    assert (answer.status, answer.problem["errors"]) == (413, [])


def test_a_full_temporary_disk_is_507_for_who_fills_it(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "disk"
    with small(disk):
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        app, free = create_app(database=store), disk_usage(disk).free

        async def scene() -> None:
            async with under_way(app, 12 * MB, ONE) as first, under_way(app, 12 * MB, ONE) as second:
                answer = await second
                assert (answer.status, answer.headers["retry-after"]) == (507, "30")
                assert "temporary disk" in answer.problem["detail"]
                assert not first.done()
                assert (await send(app, 3 * MB, OTHER)).status == 202

        asyncio.run(scene())
        assert (disk_usage(disk).free, list(disk.iterdir())) == (free, [])


SPOOLING = """
import sys
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
with Spool(max_bytes=10**9) as spool, Cutter(size=1) as cutter:
    spool.write(bytes(10**6))
    spool.finish()
    for n in range(9):
        cutter.add(b"x")
    cutter.finish()
    print(flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    with small(tmp_path / "disk"):
        disk = tmp_path / "disk"
        free = disk_usage(disk).free
        command = [sys.executable, "-c", SPOOLING]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"TMPDIR": str(disk)}
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == b"\n"
            assert disk_usage(disk).free <= free - 10**6
            process.kill()
        assert (disk_usage(disk).free, list(disk.iterdir())) == (free, [])
