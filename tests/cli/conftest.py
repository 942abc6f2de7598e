"""Runs the command in this process, as the shell would: arguments and bytes in; exit code, bytes and text out."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.cli import main
from tests.cli.cli_run import Ran, Run
from tests.cli.served import Served


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in os.environ:
        if name.startswith("CALLGRADE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CALLGRADE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """What a command does to the logs of its process is undone: the next one has another standard error."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(arg) for arg in args])
        captured = capsysbinary.readouterr()
        return Ran(code, captured.out, captured.err.decode())

    return run


@pytest.fixture
def ask(run: Run, service: Served, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `callgrade jobs` against the `service` of its module."""
    monkeypatch.setenv("CALLGRADE_SERVER", service.url)
    monkeypatch.setenv("CALLGRADE_API_KEY", service.key)
    service.provider.latency = 0.0

    def ask(*args: object, stdin: bytes = b"") -> Ran:
        ran = run("jobs", *args, stdin=stdin)
        assert service.key not in ran.out + ran.err
        assert "warning" not in ran.err
        return ran

    return ask
