from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


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
