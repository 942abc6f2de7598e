"""CONTRIBUTING.md names rooms, files and functions that are there, and its commands run."""

from __future__ import annotations

import re
from pkgutil import resolve_name

import pytest

from tests.docs.pages import BIN, ROOT, Page, shell

PAGE = Page("CONTRIBUTING.md")
CODE = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE.text, flags=re.DOTALL))


def test_the_rooms_are_those_of_the_service():
    packages = {file.parent for depth in ("", "*/", "*/*/") for file in (ROOT / "service").glob(f"{depth}__init__.py")}
    assert PAGE.table_names("## The rooms") == {str(folder.relative_to(ROOT)) for folder in packages}


@pytest.mark.parametrize("name", sorted({one for one in CODE if re.fullmatch(r"service(\.\w+)+", one)}))
def test_functions_are_there(name: str):
    assert callable(resolve_name(name))


def test_files_and_folders_are_there():
    named = {one for one in CODE if re.fullmatch(r"\.?[a-zA-Z][\w./-]*(/[\w.-]+|\.(py|toml|yaml|lock))", one)}
    assert len(named) > 25
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"\bmake (\w+)", PAGE.text))
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


@pytest.mark.parametrize("command", PAGE.block("checkout").splitlines())
def test_commands_run_in_a_checkout(command: str):
    done = shell(command.replace(".venv/bin", str(BIN)), ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
