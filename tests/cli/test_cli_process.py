"""The command as a process: pipes, signals, and what it imports."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from service.cli.commands.demo import list_demo_cases
from tests.jobs.process import until
from tests.launchers import find_launchers

COMMAND = [sys.executable, "-m", "service.cli"]
SOON = 180
"""Seconds within which two processes have loaded and answered, beside whatever else this machine does."""
CASES = b"".join(json.dumps(case.request).encode() + b"\n" for case in list_demo_cases())


def test_an_encoding_that_lacks_the_characters_ends_nothing() -> None:
    record = json.dumps(
        {
            "id": "\u00e9\u4e2d",
            "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
            "expected": {"calls": "some"},
        }
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
        most = len(list_demo_cases()) - 1  # the reader looks one line ahead
        until(lambda: out.exists() and len(out.read_bytes().splitlines()) >= most, patience=SOON)
        press_until_it_ends(ran)
        told = ran.stderr.read().decode()
    assert ran.returncode == 130
    assert "ended by Ctrl-C; " in told
    assert "traces scored with four_step@2" in told


def press_until_it_ends(process: subprocess.Popen[bytes]) -> None:
    """As people do: Python misses a ctrl-C that comes in the moment before it waits for input."""
    while True:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
            return


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from service.cli import main; code = main(['--help'])\n"
        "heavy = {'fastapi', 'uvicorn', 'scipy', 'numpy', 'starlette', 'httpx', 'litellm'} & set(sys.modules)\n"
        "heavy |= {'asyncio', 'pydantic', 'ssl'} & set(sys.modules)\n"
        "sys.exit(code if not heavy else f'imported: {heavy}')"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_it_serves_and_stops_when_told() -> None:
    server = subprocess.Popen(
        [find_launchers() / "callgrade", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        env=os.environ | {"CALLGRADE_WORKER": "false"},
    )
    check_serving(server, workers=1)


def test_several_serve_and_what_lies_in_the_folder_they_start_in_is_not_run(tmp_path: Path) -> None:
    """Not by those that serve, nor by the worker beside them: each is a Python of its own, which loads all anew."""
    (tmp_path / "service").mkdir()
    (tmp_path / "service/__init__.py").write_text("raise SystemExit('another service')")
    program = Path(sys.executable).with_name("callgrade")
    command = [program, "serve", "--port", "0", "--workers", "2"]
    server = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    check_serving(server, workers=2, until_said="working")


def check_serving(server: subprocess.Popen[bytes], *, workers: int, until_said: str = "listening") -> None:
    """It listens, answers, keeps its port, says that it `until_said`, and ends well when it is told."""
    with server:
        try:
            assert server.stderr
            first = json.loads(server.stderr.readline())
            assert (first["message"], first["host"], first["workers"]) == ("listening", "127.0.0.1", workers)
            said = [first]
            while until_said not in {one["message"] for one in said}:
                said.append(json.loads(server.stderr.readline()))
            check_answer(first["host"], first["port"])
            taken = subprocess.run(
                [find_launchers() / "callgrade", "serve", "--port", str(first["port"])],
                capture_output=True,
                check=False,
            )
            assert taken.returncode == 4
            assert b"cannot listen" in taken.stderr
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=SOON) == 0
            assert not [one for one in [*said, *map(json.loads, server.stderr)] if one["level"] != "info"]
        finally:
            server.terminate()


def check_answer(host: str, port: int) -> None:
    connection = http.client.HTTPConnection(host, port, timeout=SOON)
    connection.request("POST", "/v1/score", CASES.splitlines()[0], {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200
    assert json.loads(answer.read())["verdict"] == "pass"
    assert "server" not in {name.lower() for name, _ in answer.getheaders()}
    connection.close()
