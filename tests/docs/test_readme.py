"""README.md, typed by somebody who has only followed it from the top: in a checkout, with no callgrade on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import README, ROOT
from tests.docs.typed import Typed, type_page
from tests.faults.provider import Provider, serving
from tests.launchers import find_launchers

FAILING = {"callgrade score refund.json", "callgrade score logs.jsonl"}
"""Commands whose verdict is fail, as the page says."""
PATH = os.pathsep.join([str(Path(sys.base_prefix, "bin")), os.defpath])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh checkout: what git would keep, without the tests."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"not a git checkout: {done.stderr.strip()}")
    folder = tmp_path / "callgrade"
    for name in filter(None, done.stdout.split("\0")):
        if not name.startswith(("tests/", "docs/")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def type_readme(checkout: Path, *, left_out: str | None = None, **more: str) -> list[Typed]:
    """Types it with an empty home. Only the address of the model's provider is not the reader's."""
    assert shutil.which("callgrade", path=PATH) is None
    (checkout.parent / "home").mkdir()
    home = {"PATH": PATH, "HOME": str(checkout.parent / "home"), "LANG": "C.UTF-8", "COLUMNS": "100", **more}
    home["PIP_REQUIRE_VIRTUALENV"] = "1"  # nothing is ever installed into the Python of this machine
    with serving(Provider()) as provider:
        typed = type_page(README, checkout, home | {"CALLGRADE_JUDGE_API_BASE": provider.base()}, left_out=left_out)
        assert provider.requests
    return typed


def check_typed(typed: list[Typed], checkout: Path) -> None:
    """Every command ended as the page says, and printed what it shows."""
    said = (checkout.parent / "said").read_text("utf-8")
    assert "Traceback" not in said
    for command, code, printed in typed:
        assert code == (2 if command in FAILING else 0), (command, printed, said)
    shown = {block.name: block.body for block in README.blocks if block.note == "output"}
    first = {one.command: one.printed for one in reversed(typed)}
    assert {name: _strip(first[name]) for name in shown} == {name: _strip(body) for name, body in shown.items()}


def _strip(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_it_runs_as_typed(checkout: Path):
    """Except for the set-up of `make demo`: what that leaves in `.venv` is there, with the command of this environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout / ".venv"], check=True)
    for name in ("bin/uv", "run.stamp"):
        (checkout / ".venv" / name).touch()
    (checkout / ".venv/bin/callgrade").symlink_to(find_launchers() / "callgrade")
    check_typed(type_readme(checkout, left_out="install"), checkout)


@pytest.mark.index
def test_it_runs_as_typed_with_nothing_set_up(checkout: Path):
    outside = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    check_typed(type_readme(checkout, **outside), checkout)


def test_each_file_is_one_that_the_page_tells_the_reader_to_save():
    for name, body in README.files.items():
        before = README.text.partition(f"<!-- file: {name} -->\n```json\n{body}")[0]
        assert f"`{name}`" in before.rstrip().rsplit("\n\n", 1)[-1], name
