"""The pages are run: their files are written, their commands executed, their output compared, their requests scored."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from service import score
from tests.docs.pages import PAGES, README, ROOT, Block, Page, pages_with, shell
from tests.launchers import find_launchers

SET_UPS = {
    *("serve", "http", "batches", "batching", "hosted", "local", "check", "keys", "judging", "sandbox", "sandboxed"),
    *("checkout", "install"),
}
"""Kinds of blocks that need more than a folder: test_set_ups.py and test_contributing.py run them."""
UNRUN = {"nightly", "ray", "walk"}
"""Kinds that no test runs; their options are looked up."""

RUN = [page for page in PAGES if page != README]
"""README.md is typed as a whole, by test_readme.py."""
BLOCKS = [pytest.param(page, block, id=f"{page.path}-{n}") for page in RUN for n, block in enumerate(page.blocks)]


def of(language: str, note: str = "") -> list:
    return [one for one in BLOCKS if (one.values[1].language, one.values[1].note) == (language, note)]


def commands(page: Page) -> list[str]:
    bodies = [block.body for block in page.blocks if block.language == "sh" and not block.kind]
    return [line for body in bodies for line in body.splitlines() if line.strip() and not line.startswith("make ")]


def test_every_block_of_commands_is_run_or_known():
    assert {block.kind for page in PAGES for block in page.blocks if block.language == "sh"} == {"", *SET_UPS, *UNRUN}


@pytest.mark.parametrize("page", [page for page in RUN if commands(page)], ids=lambda page: page.path)
def test_commands_run_one_after_another(page: Page, tmp_path: Path):
    page.place(tmp_path)
    for command in commands(page):
        done = shell(command, tmp_path)
        assert done.returncode in ((0, 2) if command == "callgrade score refund.json" else (0,)), (command, done.stderr)
        assert "Traceback" not in done.stderr, command


@pytest.mark.parametrize(("page", "block"), of("text", "output"))
def test_output_is_what_the_page_shows(page: Page, block: Block, tmp_path: Path):
    printed = shell(block.name, page.place(tmp_path)).stdout
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in block.body.splitlines()]


@pytest.mark.parametrize(("page", "block"), of("python"))
def test_snippets_run(page: Page, block: Block, tmp_path: Path):
    done = subprocess.run(
        [find_launchers() / "python", "-c", block.body],
        cwd=page.place(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "block"), of("json"))
def test_the_other_requests_pass(page: Page, block: Block):
    assert score({**json.loads(block.body), "judges": "off"}).verdict == "pass"


@pytest.mark.parametrize("kind", sorted(UNRUN))
def test_commands_that_are_not_run_have_options_that_there_are(kind: str, tmp_path: Path):
    [page] = pages_with(kind)
    words = shlex.split(page.block(kind))
    options = {word for word in words if word.startswith("--")}
    known = shell(" ".join([*words[:3], "--help"]), tmp_path).stdout
    assert options <= set(re.findall(r"--[\w-]+", known))


def test_the_container_is_as_the_readme_starts_it():
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert "--publish 127.0.0.1:8000:8000 --volume callgrade:/data" in README.text
    assert {"EXPOSE 8000", "VOLUME /data"} <= set(dockerfile.splitlines())
    assert "CALLGRADE_FIRST_KEY=true" in dockerfile
