"""The gate of known vulnerabilities: its exceptions are well formed, and it lets nothing else pass. No network is asked."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest

FIELDS = {"id": str, "package": str, "version": str, "why": str, "look_again": date}
ID = re.compile(r"CVE-\d{4}-\d{4,}|GHSA(-[23456789cfghjmpqrvwx]{4}){3}|PYSEC-\d{4}-\d+")
SHORTEST_WHY = 80


def module(root: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, root / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def faults(document: dict[str, Any], locked: set[tuple[str, str]]) -> list[str]:
    """What is wrong with the exceptions of a document."""
    found = [] if document.keys() <= {"exception"} else ["what is no exception"]
    for number, one in enumerate(document.get("exception", [])):
        if {name: type(value) for name, value in one.items()} != FIELDS:
            found.append(f"{number}: expected {', '.join(FIELDS)}")
            continue
        if not ID.fullmatch(one["id"]):
            found.append(f"{number}: {one['id']} is no id")
        if (one["package"], one["version"]) not in locked:
            found.append(f"{number}: {one['package']} {one['version']} is not locked")
        if len(one["why"].strip()) < SHORTEST_WHY:
            found.append(f"{number}: why it does not reach us, in a sentence")
    ids = [(one.get("id"), one.get("package")) for one in document.get("exception", [])]
    return found + ([] if len(set(ids)) == len(ids) else ["the same twice"])


@pytest.fixture(scope="module")
def locked(root: Path) -> set[tuple[str, str]]:
    lock = tomllib.loads((root / "uv.lock").read_text("utf-8"))
    return {(one["name"], one["version"]) for one in lock["package"]}


def test_every_exception_is_well_formed_and_of_a_locked_version(root: Path, locked: set[tuple[str, str]]) -> None:
    assert faults(tomllib.loads((root / ".ci/exceptions.toml").read_text("utf-8")), locked) == []


GOOD = {
    "id": "CVE-2026-12345",
    "package": "a",
    "version": "1",
    "why": "w" * SHORTEST_WHY,
    "look_again": date(2027, 1, 1),
}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, ""),
        ({"version": "2"}, "is not locked"),
        ({"package": "b"}, "is not locked"),
        ({"id": "CVE"}, "is no id"),
        ({"why": "it is fine"}, "in a sentence"),
        ({"look_again": "2027-01-01"}, "expected"),
        ({"more": 1}, "expected"),
    ],
)
def test_a_malformed_exception_is_found(change: dict[str, Any], fault: str) -> None:
    found = faults({"exception": [GOOD | change]}, {("a", "1")})
    assert bool(found) is bool(fault)
    assert fault in "".join(found)
    assert faults({"exception": [GOOD, GOOD]}, {("a", "1")}) == ["the same twice"]


def test_a_passed_day_is_overdue(root: Path) -> None:
    audit, today = module(root, "audit"), date(2026, 11, 22)
    for days, late in ((-1, 1), (0, 0), (1, 0)):
        assert len(audit.overdue([{**GOOD, "look_again": today + timedelta(days=days)}], today)) == late


# The gate itself, against a stand-in for OSV that knows of one package.


@pytest.fixture
def osv() -> Iterator[tuple[str, dict[str, str]]]:
    """An address, and what is known there: ids of vulnerabilities by package."""
    known: dict[str, str] = {}

    class Osv(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["queries"]
            names = [query["package"]["name"] for query in asked]
            self.answer({"results": [{"vulns": [_short(known[name])]} if name in known else {} for name in names]})

        def do_GET(self) -> None:
            (package,) = [name for name, found in known.items() if self.path.endswith(f"/{found}")]
            affected = {"package": {"ecosystem": "PyPI", "name": package}, "ranges": [], "versions": []}
            self.answer({**_short(known[package]), "summary": "?", "aliases": [], "affected": [affected]})

        def answer(self, found: dict[str, Any]) -> None:
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Osv) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", known
        server.shutdown()


def _short(name: str) -> dict[str, str]:
    return {"id": name, "modified": "2026-01-01T00:00:00Z"}


def gate(root: Path, url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / ".ci/audit.py"), "--service-url", url]
    nowhere = os.environ | {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/", "UV_HTTP_RETRIES": "0"}
    return subprocess.run(command, cwd=root, env=nowhere, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("known", "passes"),
    [
        ({}, True),
        ({"starlette": "CVE-2026-99999"}, False),
        ({"ruff": "CVE-2026-99999"}, False),  # of the tools too
    ],
    ids=["nothing", "a package", "a tool"],
)
def test_nothing_but_an_exception_passes(
    uv: str, root: Path, osv: tuple[str, dict[str, str]], known: dict[str, str], passes: bool
) -> None:
    url, found = osv
    found |= known
    done = gate(root, url)
    assert (done.returncode == 0) is passes, done.stderr
    assert passes or "CVE-2026-99999" in done.stdout


# uv itself, and the images.


def test_uv_comes_by_its_hashes_everywhere(root: Path) -> None:
    lines = [line for line in (root / ".ci/uv.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    binary, name, *hashes = lines
    assert binary == "--only-binary :all:"
    assert re.fullmatch(r"uv==\d+\.\d+\.\d+ \\", name)
    assert len(hashes) > 10  # for every platform
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?", line) for line in hashes)
    for name in ("Makefile", "Dockerfile"):
        text = (root / name).read_text("utf-8")
        assert "--require-hashes --requirement .ci/uv.txt" in text
        assert not re.search(r"install[^\n]*uv==", text)


NEW = f"sha256:{'b' * 64}"
DOCKER = f"""#!/bin/sh
case "$4" in broken*) echo no >&2; exit 1;; esac
echo {NEW}
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that name images, beside a docker that knows one digest."""
    pin = module(root, "pin")
    for name in (*pin.FILES, ".ci/pin.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((root / name).read_bytes())
    docker = tmp_path / "bin/docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def pinning(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / ".ci/pin.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def images(checkout: Path) -> list[str]:
    found = (checkout / "Dockerfile").read_text().split("PYTHON_IMAGE=", 1)[1].splitlines()[:1]
    for name in ("deploy/compose.yaml", ".github/workflows/ci.yml"):
        found += re.findall(r"^\s*image: (\S+)", (checkout / name).read_text(), re.MULTILINE)
    return [image for image in found if not image.startswith("callgrade:")]


def test_pinning_writes_a_digest_beside_every_tag_and_again_in_its_place(checkout: Path) -> None:
    before = [image.partition("@")[0] for image in images(checkout)]
    for _ in range(2):
        assert pinning(checkout).returncode == 0
        assert images(checkout) == [f"{image}@{NEW}" for image in before]
    assert len(before) == 5
    assert "image: callgrade:" in (checkout / "deploy/compose.yaml").read_text()


def test_pinning_changes_nothing_where_one_digest_is_missing(checkout: Path) -> None:
    (checkout / "deploy/compose.yaml").write_text("  image: broken:1\n")
    before = images(checkout)
    done = pinning(checkout)
    assert (done.returncode, images(checkout)) == (1, before)
    assert "broken:1: docker gave no digest: no" in done.stderr
