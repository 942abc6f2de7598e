"""A service and a worker, over a provider of ours."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.provider import Provider, serving
from tests.forked import Command, Forked
from tests.jobs.process import until


@dataclass(frozen=True)
class Served:
    """A running service and the provider of its judges."""

    url: str
    key: str
    provider: Provider


def environment(home: Path, provider: Provider, **more: str) -> dict[str, str]:
    """The environment of a process of ours whose judges are at a provider."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("CALLGRADE_")}
    ours = {
        "CALLGRADE_HOME": str(home),
        "CALLGRADE_JUDGE_MODEL": "openai/gpt-fine",
        "CALLGRADE_JUDGE_API_BASE": provider.base(),
        "CALLGRADE_JUDGE_API_KEY": "none",
    }
    return bare | ours | more


@contextmanager
def served(home: Path, provider: Provider, *scopes: str) -> Iterator[Served]:
    """A service that asks for a key, which has such scopes, or those that a key has of itself."""
    with serving(provider):
        environ = environment(
            home, provider, CALLGRADE_BATCH_IN_FLIGHT="16", CALLGRADE_BATCH_CHUNK="20", CALLGRADE_WORKER="false"
        )

        def start(*args: str) -> tuple[Forked, Path]:
            command = Command("service.cli", args, environ, home / f"{args[0]}.log")
            return Forked(command), command.log

        creating, key = start("keys", "create", "--name", "t", *(f"--scope={scope}" for scope in scopes))
        assert creating.wait(60) == 0, key.read_text()
        server, worker = start("serve", "--port", "0"), start("worker")
        try:
            listening = _said(*server, "listening")
            _said(*worker, "working")
            found = re.search(r"^cg_\S+$", key.read_text(), re.MULTILINE)
            assert found
            yield Served(f"http://127.0.0.1:{json.loads(listening)['port']}", found[0], provider)
        finally:
            for process, _ in (server, worker):
                process.terminate()
            for process, _ in (server, worker):
                process.wait(60)


def _said(process: Forked, log: Path, message: str) -> str:
    """The line of a log with a message, once it is there."""
    until(lambda: f'"{message}"' in log.read_text() or process.poll() is not None, told=log.read_text)
    return next(line for line in log.read_text().splitlines() if f'"{message}"' in line)
