"""What the pages show with a server, a worker, a model's provider or a sandbox beside it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from service import Registry
from service.core.execution import build_sandbox_request, list_runnable_steps
from service.reading.request import read_request, read_request_trace
from tests.docs.pages import README, ROOT, Page, find_port, pages_with, shell, wait_for
from tests.faults.provider import Provider, serving
from tests.faults.sandbox_server import run
from tests.launchers import find_launchers

BATCHES = Page("docs/batches.md")
SANDBOXES = Page("docs/sandboxes.md")
HTTP = Page("docs/service.md")


def showing(*kinds: str) -> pytest.MarkDecorator:
    """Once for each block of these kinds; one that two pages show alike is run once."""
    found = {(kind, page.block(kind)): page for kind in kinds for page in pages_with(kind)}
    cases = [pytest.param(page, kind, id=f"{page.path}-{kind}") for (kind, _), page in found.items()]
    return pytest.mark.parametrize(("page", "kind"), cases)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where the server of the pages listens, with its worker: in a folder of its own."""
    with listening(tmp_path_factory.mktemp("server"), HTTP.block("serve").replace("--port 8000", "")) as port:
        yield port


@contextmanager
def listening(home: Path, command: str, settings: Mapping[str, str] = MappingProxyType({})) -> Generator[int]:
    """A server that is started as a page says, but on a free port."""
    port = find_port()
    words = [*shlex.split(command), "--port", str(port)]
    environment = {**os.environ, "HOME": str(home), **settings}
    launcher = find_launchers() / words[0]
    with subprocess.Popen([launcher, *words[1:]], cwd=home, stderr=subprocess.DEVNULL, env=environment) as server:
        try:
            wait_for(port)
            yield port
        finally:
            server.terminate()


def test_all_pages_start_one_server():
    assert {page.block("serve") for page in [README, *pages_with("serve")]} == {HTTP.block("serve")}


@showing("http")
def test_the_request_over_http_gives_the_bytes_of_the_command_line(page: Page, kind: str, tmp_path: Path, port: int):
    page.place(tmp_path)
    curl = shlex.split(page.block(kind))
    path = next(word for word in curl if "/v1/" in word).removeprefix("localhost:8000")
    header = curl[curl.index("-H") + 1].split(": ")
    body = (tmp_path / curl[curl.index("-d") + 1].removeprefix("@")).read_bytes()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, dict([header]), method="POST")
    with urllib.request.urlopen(request, timeout=30) as reply:
        answer = reply.read()
    printed = shell("callgrade score refund.json --format json", tmp_path).stdout
    assert json.loads(answer)["verdict"] == "fail"
    assert printed == answer.decode() + "\n"


def test_a_batch_runs_as_its_page_says(tmp_path: Path, port: int):
    """With the server of the pages, its worker and its commands."""
    address = f"http://127.0.0.1:{port}"
    BATCHES.place(tmp_path)
    done = shell(f"set -e\n{BATCHES.block('batches').replace('8000', str(port))}", tmp_path)
    told = shell(f"set -e\nexport CALLGRADE_SERVER={address}\n{BATCHES.block('batching')}", tmp_path)
    with urllib.request.urlopen(f"{address}/v1/batches", timeout=30) as reply:
        left = json.load(reply)
    assert told.returncode == 0, told.stderr
    assert "2 cases under four_step@2: 1 fail, 1 pass" in told.stdout
    assert done.returncode == 0, done.stderr
    assert [line[:14] for line in done.stdout.splitlines() if line.startswith(("event", '{"custom_id'))][-3:] == [
        "event: batch",
        '{"custom_id":"',
        '{"custom_id":"',
    ]
    assert '"verdicts":{"fail":1,"pass":1}' in done.stdout
    batch, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.rindex('{"id":"batch_') :])
    shown = json.loads(BATCHES.noted("shown", "batch"))
    assert {name: batch[name] for name in shown} == shown
    assert left["data"] == []


@showing("hosted", "local")
def test_a_judge_is_set_up_as_the_page_says(page: Page, kind: str, tmp_path: Path):
    """Against a provider of our own; for the hosted model its address comes in by the setting."""
    page.place(tmp_path)
    with serving(Provider()) as provider:
        command = page.block(kind).replace("http://127.0.0.1:11434/v1", provider.base())
        done = shell(
            f"export CALLGRADE_HOME={tmp_path} CALLGRADE_JUDGE_API_BASE={provider.base()}\n{command}", tmp_path
        )
    assert provider.requests
    assert "judged: 1 reply, 0 from the cache" in done.stdout


@showing("check")
def test_a_judge_is_checked_as_the_page_says(page: Page, kind: str, tmp_path: Path):
    page.place(tmp_path)
    with serving(Provider()) as provider:
        set_up = f"export CALLGRADE_HOME={tmp_path} CALLGRADE_JUDGE_MODEL=openai/m CALLGRADE_JUDGE_API_BASE={provider.base()}"
        done = shell(f"{set_up}\n{page.block(kind)}", tmp_path)
    assert "valid replies  3 of 3, 3 at the first try" in done.stdout


@showing("keys")
def test_keys_are_made_and_listed_as_the_page_says(page: Page, kind: str, tmp_path: Path):
    done = shell(page.block(kind), tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "key.txt").read_text("utf-8").strip()
    assert text.startswith("cg_")
    assert text.split("_")[1] in done.stdout


# The sandbox: its server, the command that uses it, and what goes over the wire.


def test_the_protocol_is_what_goes_over_the_wire():
    request = read_request(json.loads(SANDBOXES.files["unmade.json"]))
    trace = read_request_trace(request)
    sent = build_sandbox_request(trace, list_runnable_steps(trace, Registry().find(request.rubric)))
    assert sent == json.loads(SANDBOXES.noted("sent", "unmade.json"))
    assert run(sent) == json.loads(SANDBOXES.noted("returned", "unmade.json"))


def test_the_example_sandbox_makes_the_calls(tmp_path: Path):
    """The two commands, the server's in this repository, on a free port."""
    port = str(find_port())
    (tmp_path / "unmade.json").write_text(SANDBOXES.files["unmade.json"].replace("8900", port), "utf-8")
    _, *words = shlex.split(SANDBOXES.block("sandbox").replace("8900", port))
    with subprocess.Popen([sys.executable, *words], cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(int(port))
            done = shell(SANDBOXES.block("sandboxed").replace("8900", port), tmp_path)
        finally:
            server.terminate()
    assert done.returncode == 2, done.stderr
    shown = json.loads(SANDBOXES.noted("executed", "unmade.json"))
    report = json.loads(done.stdout)
    assert {name: report[name] for name in shown} == shown
