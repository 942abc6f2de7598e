"""The container's recipe and the checks' set-up, read as data: there need be no container engine here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from service.reading.packaged_files import read_yaml


@pytest.fixture(scope="module")
def recipe(root: Path) -> list[tuple[str, str]]:
    """(instruction, rest) of every instruction, with the defaults of the ARGs before the first FROM filled in."""
    text = re.sub(r"^\s*#.*\n", "", (root / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    found = [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]
    values = dict(rest.split("=", 1) for word, rest in found if word == "ARG")
    return [(word, re.sub(r"\$\{(\w+)\}", lambda name: values.get(name[1], name[0]), rest)) for word, rest in found]


def rests(recipe: list[tuple[str, str]], word: str) -> list[str]:
    return [rest for found, rest in recipe if found == word]


def test_stages_start_from_a_pinned_image(recipe: list[tuple[str, str]]) -> None:
    stages = [rest.split() for rest in rests(recipe, "FROM")]
    assert [stage[1:] for stage in stages] == [["AS", "build"], ["AS", "run"]]
    assert all(re.fullmatch(r"python:3\.\d+-slim(@sha256:[0-9a-f]{64})?", stage[0]) for stage in stages)


def test_it_runs_as_nobody_in_particular(recipe: list[tuple[str, str]]) -> None:
    last = rests(recipe, "USER")[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last)
    assert [word for word, _ in recipe].index("USER") > max(
        index for index, (word, _) in enumerate(recipe) if word in {"RUN", "COPY", "FROM"}
    )


def test_it_installs_from_the_lock_only(recipe: list[tuple[str, str]]) -> None:
    syncs = [rest for rest in rests(recipe, "RUN") if rest.startswith("uv sync")]
    assert len(syncs) == 2
    assert all({"--frozen", "--no-dev"} <= set(sync.split()) for sync in syncs)
    assert "--no-editable" in syncs[-1]
    assert "pip install --no-cache-dir --require-hashes --requirement .ci/uv.txt" in rests(recipe, "RUN")


def test_what_it_copies_is_there_and_not_ignored(recipe: list[tuple[str, str]], root: Path) -> None:
    ignored, *rules = [
        line for line in (root / ".dockerignore").read_text("utf-8").splitlines() if line[:1] not in {"", "#"}
    ]
    assert ignored == "*"
    sources = [word for rest in rests(recipe, "COPY") if not rest.startswith("--from=") for word in rest.split()[:-1]]
    assert {f"!{source}" for source in sources} <= set(rules)
    assert [source for source in sources if not (root / source).exists()] == []


class Answer(BaseHTTPRequestHandler):
    """Answers with the status that the test has set on the server."""

    def do_GET(self) -> None:
        self.send_response(self.server.status if self.path == "/livez" else 404)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (None, False)])
def test_the_health_check_tells_life_from_death(
    recipe: list[tuple[str, str]], status: int | None, healthy: bool
) -> None:
    (rest,) = rests(recipe, "HEALTHCHECK")
    program, *arguments = json.loads(rest.partition(" CMD ")[2] or rest[rest.index("CMD") + 3 :])
    assert program == "python"
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.status = status  # type: ignore[attr-defined]
        code = [argument.replace("8000", str(server.server_port)) for argument in arguments]
        if status is None:
            server.server_close()
        else:
            threading.Thread(target=server.handle_request, daemon=True).start()
        done = subprocess.run([sys.executable, *code], capture_output=True, check=False)
    assert (done.returncode == 0) is healthy


def test_the_workflow_is_pinned_and_runs_the_one_check(root: Path) -> None:
    text = (root / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    workflow = read_yaml(text, source="ci.yml")
    job = workflow["jobs"]["test"]  # type: ignore[index, call-overload]
    assert {"3.11", "3.13"} <= set(job["strategy"]["matrix"]["python"])
    assert set(job["services"]) == {"postgres", "redis"}
    assert all(
        re.search(r":\d[\w.]*(@sha256:[0-9a-f]{64})?$", service["image"]) for service in job["services"].values()
    )
    uses = [step["uses"] for step in job["steps"] if "uses" in step]
    assert uses
    assert all(re.search(r"@[0-9a-f]{40}$", use) for use in uses)
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert workflow["permissions"] == {"contents": "read"}  # type: ignore[index, call-overload]
