"""`import service` is for a reader of types too: it opens no connection and loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["fastapi", "litellm", "numpy", "rich", "scipy", "typer"]

WATCH = """
import sys
seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event.startswith("socket.") else None)
{code}
print(*sorted(set(seen) | set({heavy}) & set(sys.modules)))
"""


def noticed(code: str) -> list[str]:
    """Socket events and heavy modules that running `code` in a fresh interpreter brings."""
    program = WATCH.format(code=code, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("import socket; socket.socket().close()", "socket.__new__"),
        ("import socket; socket.getaddrinfo('127.0.0.1', 80)", "socket.getaddrinfo"),
        ("import typer", "typer"),
    ],
)
def test_the_watch_sees(code: str, seen: str) -> None:
    assert seen in noticed(code)


@pytest.mark.parametrize(
    "module",
    ["service", "service.errors", "service.settings", "service.reading.packaged_files", "service.core.judging.fits"],
)
def test_importing_does_no_work(module: str) -> None:
    assert noticed(f"import {module}") == []


@pytest.mark.parametrize("module", ["service.api.app", "service.cli.commands.worker", "service.reporting.summary"])
def test_servers_and_workers_load_numpy_only_where_they_compute_with_it(module: str) -> None:
    assert {"numpy", "scipy"}.isdisjoint(noticed(f"import {module}"))
