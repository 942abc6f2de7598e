"""The README is run: its files are written, its commands executed, its output compared, its tables checked."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from service import Shelf, score
from service.api.app import create_app
from service.core.critics import Critic
from service.core.execution import order, runnable
from service.core.kinds import kinds
from service.intake import FORMATS
from service.io.settings import settings_table
from service.io.store.callers import SCOPES
from service.request import read_request, traced
from tests.faults.provider import Provider, serving
from tests.faults.sandbox_server import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BIN = Path(sys.executable).parent
BLOCKS = re.findall(r"(?:<!-- (\w+): (.+?) -->\n)?```(\w+)(?: (\w+))?\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files the README shows."""
    folder = tmp_path_factory.mktemp("readme")
    for note, name, _, _, body in BLOCKS:
        if note == "file":
            (folder / name).write_text(body, "utf-8")
    return folder


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "HOME": str(folder)}
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def commands() -> list[str]:
    lines = [
        line for _, _, language, kind, body in BLOCKS if language == "sh" and not kind for line in body.splitlines()
    ]
    return [line for line in lines if line.strip() and not line.startswith("make ")]


def test_the_readme_begins_with_the_two_commands():
    first = next(body for _, _, language, _, body in BLOCKS if language == "sh")
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]


def test_commands_run_one_after_another(folder: Path):
    for command in commands():
        done = shell(command, folder)
        assert done.returncode in ((0, 2) if command == "callgrade score refund.json" else (0,)), (command, done.stderr)
        assert "Traceback" not in done.stderr, command


@pytest.mark.parametrize(("command", "shown"), [(name, body) for note, name, _, _, body in BLOCKS if note == "output"])
def test_output_is_what_the_readme_shows(command: str, shown: str, folder: Path):
    printed = shell(command, folder).stdout
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in shown.splitlines()]


@pytest.mark.parametrize("code", [body for _, _, language, _, body in BLOCKS if language == "python"])
def test_snippets_run(code: str, folder: Path):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where the README's server listens, with its worker: on a free port, in a folder of its own."""
    home = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = shlex.split(block("serve").replace("8000", str(port)))
    with subprocess.Popen(
        [str(BIN / words[0]), *words[1:]], cwd=home, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": str(home)}
    ) as server:
        try:
            wait_for(port)
            yield port
        finally:
            server.terminate()


def wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(port)


def test_the_request_over_http_gives_the_bytes_of_the_command_line(folder: Path, port: int):
    curl = shlex.split(next(body for _, _, _, kind, body in BLOCKS if kind == "http"))
    path = next(word for word in curl if "/v1/" in word).removeprefix("localhost:8000")
    header = curl[curl.index("-H") + 1].split(": ")
    body = (folder / curl[curl.index("-d") + 1].removeprefix("@")).read_bytes()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, dict([header]), method="POST")
    with urllib.request.urlopen(request, timeout=30) as reply:
        answer = reply.read()
    printed = shell("callgrade score refund.json --format json", folder).stdout
    assert json.loads(answer)["verdict"] == "fail"
    assert printed == answer.decode() + "\n"


def test_a_batch_runs_as_the_readme_says(folder: Path, tmp_path: Path, port: int):
    """With the README's server, its worker and its commands."""
    address = f"http://127.0.0.1:{port}"
    (tmp_path / "items.ndjson").write_bytes((folder / "items.ndjson").read_bytes())
    done = shell(f"set -e\n{block('batches').replace('8000', str(port))}", tmp_path)
    told = shell(f"set -e\nexport CALLGRADE_SERVER={address}\n{block('batching')}", tmp_path)
    with urllib.request.urlopen(f"{address}/v1/batches", timeout=30) as reply:
        left = json.load(reply)
    assert told.returncode == 0, told.stderr
    assert "2 cases under four_step@1: 1 fail, 1 pass" in told.stdout
    assert done.returncode == 0, done.stderr
    assert [line[:14] for line in done.stdout.splitlines() if line.startswith(("event", '{"custom_id'))][-3:] == [
        "event: batch",
        '{"custom_id":"',
        '{"custom_id":"',
    ]
    assert '"verdicts":{"fail":1,"pass":1}' in done.stdout
    batch, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.rindex('{"id":"batch_') :])
    shown = json.loads(noted("shown", "batch"))
    assert {name: batch[name] for name in shown} == shown
    assert left["data"] == []


def test_a_calibration_runs_as_the_readme_says(folder: Path, tmp_path: Path, port: int):
    for name in ("labels.jsonl", "predictions.jsonl"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    done = shell(f"set -e\nexport CALLGRADE_SERVER=http://127.0.0.1:{port}\n{block('calibrating')}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "submitted 2 labelled items with 2 recorded predictions" in done.stderr
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"report.json", "report.md", "report.html", "fits"}


def test_the_table_of_batches_names_all_its_routes():
    section = README.split("## Batches over HTTP")[1].split("\n## ")[0]
    rows = [
        re.findall(r"`(?:(GET|POST|DELETE) )?(/[^`]*)`", line.split("|")[1])
        for line in section.splitlines()
        if "| `" in line
    ]
    named = {(method or row[0][0], f"/v1/batches{path.rstrip('/')}") for row in rows for method, path in row}
    known = create_app().openapi()["paths"]
    assert named == {
        (method.upper(), path.replace("{batch_id}", "{id}"))
        for path, methods in known.items()
        if path.startswith("/v1/batches")
        for method in methods
    }


def table_names(heading: str) -> set[str]:
    """The names in code style in the first column of the table below a heading."""
    section = README.split(heading)[1].split("\n#")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([\w/{}]+)`", row.split("|")[1])}


def test_the_tables_name_all_there_is():
    assert table_names("### Formats") == set(FORMATS)
    assert table_names("### What can be expected") == set(kinds(Critic))
    assert table_names("### Rubrics") == {rubric.id for rubric in Shelf()}
    assert table_names("## Let a judge answer the rest") == set(Shelf().judges)


@pytest.mark.parametrize("kind", ["hosted", "local"])
def test_a_judge_is_set_up_as_the_readme_says(kind: str, folder: Path, tmp_path: Path):
    """Against a provider of our own; for the hosted model its address comes in by the setting."""
    with serving(Provider()) as provider:
        command = block(kind).replace("http://127.0.0.1:11434/v1", provider.base())
        done = shell(f"export CALLGRADE_HOME={tmp_path} CALLGRADE_JUDGE_API_BASE={provider.base()}\n{command}", folder)
    assert provider.requests
    assert "judged: 1 reply, 0 from the cache" in done.stdout


def test_keys_are_made_and_listed_as_the_readme_says(tmp_path: Path):
    done = shell(block("keys"), tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "key.txt").read_text("utf-8").strip()
    assert text.startswith("cg_")
    assert text.split("_")[1] in done.stdout


def test_the_table_of_scopes_names_all():
    assert table_names("## Access") == set(SCOPES)


def test_the_settings_are_those_of_the_service():
    for name, default, meaning in settings_table():
        assert f"| `{name}` | {f'`{default}`' if default else 'none'} | {meaning} |" in README


@pytest.mark.parametrize("body", [body for note, _, language, _, body in BLOCKS if language == "json" and not note])
def test_the_other_requests_pass(body: str):
    assert score({**json.loads(body), "judges": "off"}).verdict == "pass"


# The sandbox: its server, the command that uses it, and what goes over the wire.


def noted(note: str, name: str) -> str:
    return next(body for found, named, _, _, body in BLOCKS if (found, named) == (note, name))


def block(kind: str) -> str:
    return next(body for _, _, _, found, body in BLOCKS if found == kind)


def test_the_protocol_is_what_goes_over_the_wire():
    request = read_request(json.loads(noted("file", "unmade.json")))
    trace = traced(request)
    sent = order(trace, runnable(trace, Shelf().find(request.rubric)))
    assert sent == json.loads(noted("sent", "unmade.json"))
    assert run(sent) == json.loads(noted("returned", "unmade.json"))


def test_the_example_sandbox_makes_the_calls(tmp_path: Path):
    """The two commands, the server's in this repository, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (tmp_path / "unmade.json").write_text(noted("file", "unmade.json").replace("8900", port), "utf-8")
    _, *words = shlex.split(block("sandbox").replace("8900", port))
    with subprocess.Popen([sys.executable, *words], cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(int(port))
            done = shell(block("sandboxed").replace("8900", port), tmp_path)
        finally:
            server.terminate()
    assert done.returncode == 2, done.stderr
    shown = json.loads(noted("executed", "unmade.json"))
    report = json.loads(done.stdout)
    assert {name: report[name] for name in shown} == shown


def test_labelled_items_are_judged_as_the_readme_says(folder: Path, tmp_path: Path):
    (tmp_path / "labels.jsonl").write_bytes((folder / "labels.jsonl").read_bytes())
    with serving(Provider()) as provider:
        settings = (
            f"CALLGRADE_HOME={tmp_path} CALLGRADE_JUDGE_MODEL=openai/good CALLGRADE_JUDGE_API_BASE={provider.base()}"
        )
        done = shell(f"export {settings}\n{block('judging')}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "predictions.jsonl").read_text("utf-8").splitlines()) == 2
