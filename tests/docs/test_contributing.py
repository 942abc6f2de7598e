"""CONTRIBUTING.md and SECURITY.md name rooms, files, functions and settings that are there, and commands run."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pkgutil import resolve_name

import pytest

from service.settings import list_settings
from service.store.access.keys import SCOPES
from tests.docs.pages import BIN, README, ROOT, Page, shell

PAGE, SECURITY = Page("CONTRIBUTING.md"), Page("SECURITY.md")


def list_code(page: Page) -> list[str]:
    """What stands between backticks in the text of a page."""
    return re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", page.text, flags=re.DOTALL))


CODE = list_code(PAGE)


def test_the_rooms_are_those_of_the_service():
    packages = {file.parent for depth in ("", "*/", "*/*/") for file in (ROOT / "service").glob(f"{depth}__init__.py")}
    assert PAGE.table_names("## The rooms") == {str(folder.relative_to(ROOT)) for folder in packages}


@pytest.mark.parametrize("name", sorted({one for one in CODE if re.fullmatch(r"service(\.\w+)+", one)}))
def test_functions_are_there(name: str):
    assert callable(resolve_name(name))


@pytest.mark.parametrize(("page", "least"), [(PAGE, 25), (SECURITY, 1)], ids=["contributing", "security"])
def test_files_and_folders_are_there(page: Page, least: int):
    file = re.compile(r"\.?[a-zA-Z][\w./-]*(/[\w.-]+|\.(py|toml|yaml|lock|md))")
    named = {one for one in list_code(page) if file.fullmatch(one) and not one.startswith("v1/")}
    assert len(named) >= least
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_settings_and_scopes_of_the_page_on_security_are_those_of_the_service():
    known = [name for name, _, _ in list_settings()]
    named = [one for one in list_code(SECURITY) if re.fullmatch(r"[A-Z_*]*_[A-Z_*]+", one)]
    assert len(named) > 5
    assert [one for one in named if not any(fnmatch(name, one) for name in known)] == []
    assert {"metrics", "admin"} <= {*list_code(SECURITY)} & {*SCOPES}
    assert "(SECURITY.md)" in README.text


def test_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"\bmake (\w+)", PAGE.text))
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


@pytest.mark.parametrize("command", PAGE.block("checkout").splitlines())
def test_commands_run_in_a_checkout(command: str):
    done = shell(command.replace(".venv/bin", str(BIN)), ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
