"""Ready means ready: `/readyz` says so once that is loaded which the first request needs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from starlette.exceptions import HTTPException

from service.api.readiness import Readiness
from tests.api.asgi_caller import Ask
from tests.cli.served import environment
from tests.faults.provider import Provider, serving

LOADED = """
import asyncio, sys
from service.api.app import create_app
from service.wiring import prepare_database
from service.settings import Settings
from tests.api.asgi_caller import exchange

settings = Settings.from_env(__import__("os").environ)

async def run():
    app = create_app(settings, database=prepare_database(settings))
    first = await exchange(app, "GET", "/readyz")
    before = "litellm" in sys.modules
    statuses = {first.status}
    while (answer := await exchange(app, "GET", "/readyz")).status != 200:
        statuses.add(answer.status)
    needed = [name in sys.modules for name in ("litellm", "openai.resources.chat", "sqlalchemy")]
    print(first.status == 200 and not before, statuses <= {200, 503}, needed)

asyncio.run(run())
"""


def test_ready_is_said_when_litellm_and_the_rest_are_loaded(tmp_path: Path) -> None:
    with serving(Provider()) as provider:
        command = [sys.executable, "-c", LOADED]
        environ = environment(tmp_path, provider) | {"PYTHONPATH": str(Path.cwd())}
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
        assert ran.stdout.split("\n")[-2:-1] == ["False True [True, True, True]"], ran.stdout + ran.stderr
        assert not provider.requests


def answer(readiness: Readiness) -> str:
    async def ask() -> str:
        try:
            await readiness.check()
        except HTTPException as error:
            return f"{error.status_code} {error.detail}"
        return "ready"

    return asyncio.run(ask())


def test_what_fails_is_named_and_tried_again() -> None:
    tries: list[int] = []

    async def store() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OSError

    async def rubrics() -> None:
        pass

    readiness = Readiness({"store": store, "rubrics": rubrics}, Event())
    found = [answer(readiness) for _ in range(5)]
    assert found == ["503 not loaded yet: store"] * 2 + ["ready"] * 3
    assert len(tries) == 3


def test_a_service_that_stops_is_not_ready() -> None:
    stopping = Event()
    readiness = Readiness({}, stopping)
    before = answer(readiness)
    stopping.set()
    assert [before, answer(readiness)] == ["ready", "503 the service is stopping"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_service_without_judges_is_ready_at_once(ask: Ask, times: int) -> None:
    assert [ask("GET", "/readyz").status for _ in range(times)] == [200] * times
