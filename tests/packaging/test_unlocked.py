"""The wheel with the newest releases of what it depends on, as `pip install` gives it to others: without the lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.pages import README, find_port, wait_for

pytestmark = pytest.mark.index

PIP = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
"""How pip reaches an index from here, where the environment says so."""
LABELS = 60


class Installed:
    """An environment with the wheel, and a folder in which its programs run with an empty home."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.folder = folder / "env" / "bin", folder / "here"
        self.environ = {"PATH": os.defpath, "HOME": str(folder / "home"), "LANG": "C.UTF-8"}
        self.folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)

    def run(self, program: str, *words: str, code: int = 0, environ: Mapping[str, str] = PIP) -> str:
        """Runs a program of the environment, which has to end with this code, and returns what it printed."""
        command = [str(self.programs / program), *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ | environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (words, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """With what scores traces only."""
    installed = Installed(tmp_path_factory.mktemp("unlocked"))
    installed.run("python", "-m", "pip", "install", "--quiet", str(wheel))
    return installed


@pytest.fixture(scope="module")
def full(light: Installed, wheel: Path) -> Installed:
    """With all extras."""
    light.run("python", "-m", "pip", "install", "--quiet", f"{wheel}[server,calibration]")
    return light


def test_it_scores(light: Installed) -> None:
    light.run("python", "-m", "pip", "check")
    assert "fail" in light.run("callgrade", "demo")
    light.run("callgrade", "demo", "--save", "cases.jsonl")
    reports = light.run("callgrade", "score", "cases.jsonl", "--judges", "off", "--format", "ndjson", code=2)
    assert len(reports.splitlines()) == 11


def test_it_serves(full: Installed) -> None:
    full.run("python", "-m", "pip", "check")
    port = str(find_port())
    command = [full.programs / "callgrade", "serve", "--port", port]
    (full.folder / "refund.json").write_text(README.files["refund.json"], "utf-8")
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/score",
        README.files["refund.json"].encode(),
        {"content-type": "application/json"},
        method="POST",
    )
    with subprocess.Popen(command, cwd=full.folder, env=full.environ, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(int(port))
            with urllib.request.urlopen(request, timeout=60) as reply:
                answered = reply.read()
        finally:
            server.terminate()
    printed = full.run("callgrade", "score", "refund.json", "--format", "json", code=2)
    assert printed.encode() == answered + b"\n"


def test_it_calibrates(full: Installed) -> None:
    rows: list[dict[str, object]] = []
    for n in range(LABELS):
        item = {"id": f"a{n}", "criterion": "result_groundedness"}
        label = {"annotator": "ana", "label": "pass" if n % 2 else "fail"}
        rows.append({**item, "group": f"t{n}", "payload": {"n": n}, "answer": str(n), "labels": [label]})
        rows.append({**item, "judge": "result_groundedness", "model": "m", "raw": 0.9 if n % 2 else 0.2})
    (full.folder / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    assert "May I use it?" in full.run("callgrade", "calibrate", "run", "--labels", "labels.jsonl", "--out", "run")
    full.run("callgrade", "calibrate", "install", "run")
    assert "result_groundedness" in full.run("callgrade", "calibrate", "fits")
