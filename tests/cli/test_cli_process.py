"""The command as a process: pipes, signals, and what it imports."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.cli.rendering.demo import demo_cases
from tests.forked import Command, Forked
from tests.jobs.process import until
from tests.launchers import find_launchers

COMMAND = [sys.executable, "-m", "service.cli"]
SOON = 180
"""Seconds within which two processes have loaded and answered, beside whatever else this machine does."""
CASES = b"".join(json.dumps(case.request).encode() + b"\n" for case in demo_cases())


def test_a_pipe_in_and_a_pipe_out() -> None:
    ran = subprocess.run([*COMMAND, "score", "-", "--format", "ndjson"], input=CASES, capture_output=True, check=False)
    assert ran.returncode == 2, ran.stderr
    assert len(ran.stdout.splitlines()) == len(demo_cases())
    assert b"\x1b" not in ran.stdout + ran.stderr


def test_an_encoding_that_lacks_the_characters_ends_nothing() -> None:
    record = json.dumps(
        {"id": "\u00e9\u4e2d", "messages": [{"role": "user", "content": "Hi"}], "expected": {"calls": "some"}}
    )
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    ran = subprocess.run([*COMMAND, "score", "-"], input=record.encode(), capture_output=True, check=False, env=environ)
    assert ran.returncode == 2, ran.stderr
    assert b"decide" in ran.stdout


def test_a_reader_who_leaves_is_no_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "score", "-", "--format", "ndjson"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as ran:
        assert ran.stdin
        assert ran.stdout
        assert ran.stderr
        ran.stdout.close()
        ran.stdin.write(CASES)
        ran.stdin.close()
        assert ran.stderr.read() == b""
        assert ran.wait() == 141


def test_ctrl_c_keeps_and_counts_what_was_scored(tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    words = ["score", "-", "--format", "ndjson", "-o", str(out)]
    with subprocess.Popen([*COMMAND, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdin
        assert ran.stderr
        ran.stdin.write(CASES)
        ran.stdin.flush()
        most = len(demo_cases()) - 1  # the reader looks one line ahead
        until(lambda: out.exists() and len(out.read_bytes().splitlines()) >= most, patience=SOON)
        ran.send_signal(signal.SIGINT)
        told = ran.stderr.read().decode()
        assert ran.wait() == 130
    assert "ended by ctrl-C; " in told
    assert "traces scored with four_step@2" in told


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from service.cli import main; code = main(['--help'])\n"
        "heavy = {'fastapi', 'uvicorn', 'scipy', 'numpy', 'starlette', 'httpx', 'litellm'} & set(sys.modules)\n"
        "heavy |= {'asyncio', 'pydantic', 'ssl'} & set(sys.modules)\n"
        "sys.exit(code if not heavy else f'imported: {heavy}')"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


@contextmanager
def serving(workers: int) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A server on a free port, with its first line of log."""
    alone = os.environ | {"CALLGRADE_WORKER": "false"}
    program = COMMAND if workers > 1 else [find_launchers() / "callgrade"]  # several are loaded anew each
    command = [*program, "serve", "--port", "0", "--workers", str(workers)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=alone) as server:
        assert server.stderr
        try:
            yield server, json.loads(server.stderr.readline())
        finally:
            server.terminate()


@pytest.mark.parametrize("workers", [1, 2])
def test_it_serves_and_stops_when_told(workers: int) -> None:
    with serving(workers) as (server, first):
        assert (first["message"], first["host"], first["workers"]) == ("listening", "127.0.0.1", workers)
        connection = http.client.HTTPConnection(first["host"], first["port"], timeout=SOON)
        connection.request("POST", "/v1/score", CASES.splitlines()[0], {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["verdict"] == "pass"
        assert "server" not in {name.lower() for name, _ in answer.getheaders()}
        connection.close()
        taken = subprocess.run(
            [find_launchers() / "callgrade", "serve", "--port", str(first["port"])], capture_output=True, check=False
        )
        assert taken.returncode == 4
        assert b"cannot listen" in taken.stderr
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=SOON) == 0
        assert server.stderr
        assert {json.loads(line)["level"] for line in server.stderr} == {"info"}


def test_it_ends_though_it_was_told_while_python_looked_for_garbage(tmp_path: Path) -> None:
    alone = os.environ | {"CALLGRADE_WORKER": "false"}
    process = Forked(Command("tests.cli.told_while_collecting", (), alone, tmp_path / "log"))
    try:
        assert process.wait(SOON) == 0
    finally:
        process.kill()
    assert "Exception ignored" in (tmp_path / "log").read_text()


def test_what_lies_in_the_folder_it_starts_in_is_not_run(tmp_path: Path) -> None:
    """Not by the worker beside it either, which is a Python of its own."""
    (tmp_path / "service").mkdir()
    (tmp_path / "service/__init__.py").write_text("raise SystemExit('another service')")
    program = str(Path(sys.executable).with_name("callgrade"))
    alone = os.environ | {"CALLGRADE_HOME": str(tmp_path / "home")}
    log = tmp_path / "log"
    with (
        log.open("wb") as file,
        subprocess.Popen([program, "serve", "--port", "0"], cwd=tmp_path, stderr=file, env=alone) as server,
    ):
        try:
            until(lambda: '"working"' in log.read_text() or "another service" in log.read_text())
        finally:
            server.terminate()
    assert "another service" not in log.read_text()
