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
from datetime import date
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
        ({"diskcache": "CVE-2025-69872"}, True),
        ({"diskcache": "CVE-2026-99999"}, False),
        ({"starlette": "CVE-2026-99999"}, False),
        ({"ruff": "CVE-2026-99999"}, False),  # of the tools too
    ],
    ids=["nothing", "the exception", "another of its package", "another", "a tool"],
)
def test_nothing_but_an_exception_passes(
    uv: str, root: Path, osv: tuple[str, dict[str, str]], known: dict[str, str], passes: bool
) -> None:
    url, found = osv
    found |= known
    done = gate(root, url)
    assert (done.returncode == 0) is passes, done.stderr
    assert passes or "CVE-2026-99999" in done.stdout
