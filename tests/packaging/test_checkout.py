"""The lock, make, and what may stand in a file of the project: no machine's paths, no index but the public one, nothing huge."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest


@pytest.fixture(scope="module")
def lock(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "uv.lock").read_text(encoding="utf-8"))


def files(package: dict[str, Any]) -> list[dict[str, str]]:
    sdist = [package["sdist"]] if "sdist" in package else []
    return [*sdist, *package.get("wheels", [])]


def test_the_lock_is_what_the_project_asks_for(uv: str, root: Path) -> None:
    check = [uv, "lock", "--check", "--offline", "--project", str(root)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_package_comes_from_the_public_index(lock: dict[str, Any]) -> None:
    sources = {package["name"]: package["source"] for package in lock["package"]}
    assert sources.pop("callgrade") == {"editable": "."}
    assert {str(source) for source in sources.values()} == {str({"registry": "https://pypi.org/simple"})}
    hosts = {urlsplit(file["url"]).hostname for package in lock["package"] for file in files(package)}
    assert hosts == {"files.pythonhosted.org"}


def test_every_file_has_a_hash_and_is_older_than_the_cool_down(lock: dict[str, Any]) -> None:
    newest = lock["options"]["exclude-newer"]
    found = [file for package in lock["package"] for file in files(package)]
    assert found
    assert [file["url"] for file in found if not file["hash"].startswith("sha256:")] == []
    assert [file["url"] for file in found if file["upload-time"] > newest] == []


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Path:
    """A folder with all that set-up looks at, and no environment."""
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy2(root / name, tmp_path)
    return tmp_path


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *words], cwd=folder, env=outside, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_a_python_too_old_or_absent_gets_one_clear_line(fresh: Path, python: str) -> None:
    done = make(fresh, "demo", f"PYTHON={python}")
    first, *rest = done.stderr.splitlines()
    assert first == f"callgrade needs Python 3.11 or newer, which '{python}' is not; name one: make PYTHON=python3.12"
    assert all(line.startswith("make") for line in rest)
    assert done.returncode
    assert not (fresh / ".venv").exists()


def test_an_environment_that_is_ready_is_not_set_up_again(fresh: Path) -> None:
    ready = fresh / ".venv"
    (ready / "bin").mkdir(parents=True)
    for name in ("bin/uv", "full.stamp", "run.stamp"):
        (ready / name).touch()
    assert "up to date" in make(fresh, ".venv/full.stamp").stdout
    assert "up to date" in make(fresh, ".venv/run.stamp").stdout
    plan = make(fresh, "--dry-run", "demo", "PYTHON=false")
    assert plan.stdout.startswith(".venv/bin/callgrade demo\n")


def test_a_new_lock_asks_for_a_new_set_up(fresh: Path) -> None:
    (fresh / ".venv/bin").mkdir(parents=True)
    for name in ("bin/uv", "full.stamp", "run.stamp"):
        (fresh / ".venv" / name).touch()
        os.utime(fresh / ".venv" / name, (0, 0))
    assert "uv sync --quiet --frozen --no-dev --all-extras --inexact " in make(fresh, "--dry-run", "demo").stdout
    assert "uv sync --quiet --frozen --all-extras ||" in make(fresh, "--dry-run", "lint").stdout


def test_clean_leaves_the_environment_and_the_sources(fresh: Path) -> None:
    for name in (".venv/lib/__pycache__", "service/__pycache__", "dist", ".hypothesis"):
        (fresh / name).mkdir(parents=True)
    (fresh / "service/a.py").touch()
    assert make(fresh, "clean").returncode == 0
    assert (fresh / ".venv/lib/__pycache__").is_dir()
    assert sorted(path.name for path in (fresh / "service").iterdir()) == ["a.py"]
    assert not (fresh / "dist").exists()
    assert not (fresh / ".hypothesis").exists()


PUBLIC_INDEX = {"pypi.org", "files.pythonhosted.org"}
LARGEST = 2**20

# Written in pieces, or this file would find itself.
MACHINE_PATH = re.compile(
    r"(?<![\w.~-])(?:[a-z]+://)?/(?:" + "|".join(["wo" + "rk", "ro" + "ot", r"(?:home|Users)/\w+"]) + r")/"
)
WORKSPACE_PATH = re.compile(r"(?<![\w.~-])/wo" + "rk/")
DATA = ("tests/data/", "calibration/")  # published traces speak of home folders of their own

INDEX_LIKE = re.compile(r"https?://[^\s\"'<>)\]]+")
INDEX_WORDS = re.compile(r"pypi|pythonhosted|artifactory|nexus|devpi|/simple(?:/|$)")
INDEX_OPTION = re.compile(
    r"--(?:extra-|default-)?index(?:-url)?\b|--find-links|\s-i\s+http"
    r"|(?:PIP|UV)_(?:\w+_)?(?:INDEX|FIND_LINKS)\w*|\[\[tool\.uv\.index|find-links|index-url"
)
SETS_UP = ("Makefile", "Dockerfile", "pyproject.toml", ".ci/", ".github/", "deploy/compose.yaml")


def machine_paths(name: str, text: str) -> list[str]:
    pattern = WORKSPACE_PATH if name.startswith(DATA) else MACHINE_PATH
    return pattern.findall(text)


def foreign_indexes(text: str) -> set[str]:
    urls = [url for url in INDEX_LIKE.findall(text) if INDEX_WORDS.search(url.lower())]
    return {str(urlsplit(url).hostname) for url in urls} - PUBLIC_INDEX


def texts(root: Path, kept: list[str]) -> dict[str, str]:
    here = Path(__file__).relative_to(root).as_posix()
    return {name: (root / name).read_text(encoding="utf-8", errors="replace") for name in kept if name != here}


def test_no_file_names_a_place_on_one_machine(root: Path, kept: list[str]) -> None:
    found = {name: machine_paths(name, text) for name, text in texts(root, kept).items()}
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_no_file_names_another_package_index(root: Path, kept: list[str]) -> None:
    found = {name: foreign_indexes(text) for name, text in texts(root, kept).items()}
    assert {name: hosts for name, hosts in found.items() if hosts} == {}


def test_setting_up_leaves_the_choice_of_index_to_the_user(root: Path, kept: list[str]) -> None:
    assert INDEX_OPTION.search("pip install --extra-" + "index-url x")
    found = {name: INDEX_OPTION.findall(text) for name, text in texts(root, kept).items() if name.startswith(SETS_UP)}
    assert "Makefile" in found
    assert {name: options for name, options in found.items() if options} == {}


def test_no_file_is_huge(root: Path, kept: list[str]) -> None:
    sizes = {name: (root / name).stat().st_size for name in kept}
    assert {name: size for name, size in sizes.items() if size >= LARGEST} == {}


def test_every_file_is_text_with_a_last_newline(root: Path, kept: list[str]) -> None:
    ends = {name: (root / name).read_bytes()[-1:] for name in kept if name.endswith((".py", ".yaml", ".md", ".toml"))}
    assert [name for name, end in ends.items() if end not in {b"", b"\n"}] == []
