"""A service as `callgrade serve` runs it, with its worker, over a provider of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.batches.process import until
from tests.faults.provider import Provider, serving

COMMAND = [sys.executable, "-m", "service.cli"]


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
def served(home: Path, provider: Provider) -> Iterator[Served]:
    """A service that asks for a key."""
    with serving(provider):
        environ = environment(home, provider, CALLGRADE_BATCH_IN_FLIGHT="16", CALLGRADE_BATCH_CHUNK="20")
        made = subprocess.run(
            [*COMMAND, "keys", "create", "--name", "t"], env=environ, capture_output=True, text=True, check=True
        )
        log = home / "serve.log"
        with log.open("wb") as stream:
            process = subprocess.Popen([*COMMAND, "serve", "--port", "0"], env=environ, stderr=stream)
        try:
            until(lambda: '"working"' in log.read_text() or process.poll() is not None, told=log.read_text)
            first = next(line for line in log.read_text().splitlines() if '"listening"' in line)
            yield Served(f"http://127.0.0.1:{json.loads(first)['port']}", made.stdout.strip(), provider)
        finally:
            process.terminate()
            process.wait(60)
