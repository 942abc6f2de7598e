"""Light: an import does no work, and without the extras what scores traces runs, while what needs a server says so."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from service.cli.commands.demo import list_demo_cases
from tests.faults.provider import Provider, serving
from tests.launchers import find_launchers

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


HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from service.cli import main
codes = [main(words.split()) for words in sys.argv[1:]]
sys.exit(codes[0] if len(set(codes)) == 1 else f"ended with {codes}")
"""
"""Its arguments are commands, which run one after the other; what none of them may import is absent for all."""
MODULES = {"psycopg[binary]": "psycopg", "prometheus-client": "prometheus_client"}


@pytest.fixture(scope="module")
def light(root: Path) -> str:
    """A program that runs callgrade where nothing of an extra can be imported."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [one for extra in project["optional-dependencies"].values() for one in extra]
    names = {one.partition(">")[0] for one in needed}
    return f"HIDDEN = {sorted(MODULES.get(name, name) for name in names)}\n{HIDE}"


def run(light: str, folder: Path, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", light, *args],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_scores_needs_no_extra(light: str, tmp_path: Path) -> None:
    done = run(light, tmp_path, "calibrate --help", "rubrics list", "demo --save cases.jsonl", "demo")
    assert (done.returncode, done.stderr) == (0, "11 requests written; next: callgrade score cases.jsonl\n")


def test_traces_are_scored_by_code_and_by_a_judge(light: str, tmp_path: Path) -> None:
    cases = [json.dumps(case.request) for case in list_demo_cases()]
    (tmp_path / "cases.jsonl").write_text("\n".join(cases), "utf-8")
    provider = Provider()
    with serving(provider):
        judge = {
            "CALLGRADE_JUDGE_MODEL": "openai/gpt-fine",
            "CALLGRADE_JUDGE_API_BASE": provider.base(),
            "CALLGRADE_JUDGE_API_KEY": "none",
        }
        done = run(light, tmp_path, "score cases.jsonl --format ndjson", **judge)
    assert done.returncode == 2, done.stderr
    assert "fault" not in done.stderr
    assert len([json.loads(line)["verdict"] for line in done.stdout.splitlines()]) == 11
    assert provider.requests


def test_calls_are_paired_as_they_are_with_the_extras(light: str, tmp_path: Path) -> None:
    made = [{"call": {"name": "set", "arguments": {"a": n, "b": n % 2}}} for n in (3, 1, 2, 4)]
    due = [{"tool": "set", "args": {"a": n, "b": 0}} for n in (1, 2, 3, 4)]
    record = {"trace": {"format": "callgrade", "events": made}, "expected": {"calls": due}}
    (tmp_path / "one.jsonl").write_text(json.dumps(record))
    command = "score one.jsonl --judges off --format ndjson"
    with_extras = subprocess.run(
        [find_launchers() / "callgrade", *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run(light, tmp_path, command).stdout == with_extras.stdout


def test_what_needs_an_extra_names_it(light: str, tmp_path: Path) -> None:
    done = run(light, tmp_path, "serve", "worker", "keys list")
    assert done.returncode == 4, done.stderr
    assert done.stderr.count("pip install 'callgrade[server]'") == 3
    (tmp_path / "none.jsonl").touch()
    done = run(light, tmp_path, "score none.jsonl --on ray --output parts")
    assert (done.returncode, "Ray is not installed" in done.stderr) == (4, True), done.stderr
