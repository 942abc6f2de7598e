"""A store as a worker left it that was killed: a batch and a calibration half done. Later code goes on with it."""

from __future__ import annotations

import json
import lzma
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.faults.provider import Provider, serving
from tests.frozen.asking import Asker
from tests.frozen.golden import FOLDER
from tests.jobs.process import Service, request, service
from tests.labelled import item

Json = Any

FILE = FOLDER / "store.sql.xz"

ITEMS, LABELLED = 60, 60
"""Of the batch; and of the calibration, each with one question."""

LATE = 4_102_444_800.0
"""The deadline of both: the year 2100."""

IN_FLIGHT = 4


def keyed(path: str) -> dict[str, str]:
    """The headers of a submission."""
    return {"content-type": "application/json", "idempotency-key": path}


def bodies() -> dict[str, Json]:
    """What was submitted, by route."""
    entries = [{"custom_id": f"item-{number}", **request(number)} for number in range(ITEMS)]
    labelled = [item(number) for number in range(LABELLED)]
    asking = {"judges": "fresh", "method": "platt"}
    return {"/v1/batches": {"items": entries}, "/v1/calibrations": {"items": labelled, **asking}}


@contextmanager
def working(home: Path, provider: Provider, **settings: str) -> Iterator[Service]:
    """The store in `home`, brought up to date, and workers for it."""
    more = {"CALLGRADE_BATCH_CHUNK": "10", "CALLGRADE_BATCH_IN_FLIGHT": str(IN_FLIGHT), **settings}
    with service(f"sqlite:///{home}/store.db", home, provider, **more) as run:
        yield run


def load_store(home: Path) -> None:
    """Makes the store of the dump."""
    with closing(sqlite3.connect(home / "store.db")) as store:
        store.executescript(lzma.decompress(FILE.read_bytes()).decode())


def write_database() -> None:
    """Has a server take a batch and a calibration, kills their worker midway, and keeps the store."""
    provider = Provider(latency=0.3)
    with TemporaryDirectory() as folder, serving(provider), working(Path(folder), provider) as run:
        taken = _submit(run)
        worker = run.start()
        run.until(lambda: all(_done(folder, path) >= ITEMS // 3 for path in taken))
        worker.kill()
        worker.wait()
        FILE.write_bytes(lzma.compress(_dumped(Path(folder) / "store.db").encode()))


def _submit(run: Service) -> list[str]:
    """The places of both."""
    server = run.start("serve", "--port", "0", CALLGRADE_WORKER="false")
    run.until(lambda: '"listening"' in run.log())
    line = next(line for line in run.log().splitlines() if '"listening"' in line)
    base = f"http://127.0.0.1:{json.loads(line)['port']}"
    found = [httpx.post(base + path, content=json.dumps(body), headers=keyed(path)) for path, body in bodies().items()]
    server.terminate()
    server.wait(60)
    return [answer.raise_for_status().headers["location"] for answer in found]


def _done(folder: str, path: str) -> int:
    with Asker(Path(folder) / "store.db") as ask:
        return ask("GET", path).json["request_counts"]["completed"]


def _dumped(file: Path) -> str:
    with closing(sqlite3.connect(file)) as store:
        store.execute("UPDATE callgrade_batches SET deadline_at = ?", (LATE,))
        store.commit()
        return "\n".join(store.iterdump())
