from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest


def test_it_holds_the_package_its_data_and_nothing_else(wheel: Path, root: Path, kept: list[str]) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    expected = {name for name in kept if name.startswith("service/")}
    for source, target in carried.items():
        expected |= {
            target + name.removeprefix(source) for name in kept if name == source or name.startswith(source + "/")
        }
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - metadata == expected
    assert {name.partition("/")[2] for name in metadata} == {
        *("METADATA", "RECORD", "WHEEL"),
        *("entry_points.txt", "licenses/LICENSE"),
    }


def test_it_names_its_command_and_its_plugin(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
    assert archive.read(name).decode().split() == [
        *("[console_scripts]", "callgrade", "=", "service.cli:main"),
        *("[pytest11]", "pytest_callgrade", "=", "pytest_callgrade"),
    ]


@pytest.fixture(scope="module")
def installed(wheel: Path, uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel. Its dependencies are this environment's, lent by a .pth file, so nothing is
    fetched; a .pth file found through another is not read, so the checkout, installed editable here, is not lent."""
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin" / "python"
    command = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(python), str(wheel)]
    subprocess.run(command, check=True)
    (site,) = place.glob("lib/python*/site-packages")
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "lent.pth").write_text("\n".join(sorted(lent)), encoding="utf-8")
    return place


def run(installed: Path, cwd: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of the environment somewhere else, with an empty home and none of the caller's variables."""
    home = cwd.parent / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8"}
    program = str(installed / "bin" / command[0])
    return subprocess.run([program, *command[1:]], cwd=cwd, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_installed_it_runs_from_the_environment_not_the_checkout(installed: Path, elsewhere: Path) -> None:
    code = "from service.reading.packaged_files import find_resource; print(find_resource('rubrics', 'four_step.yaml'))"
    done = run(installed, elsewhere, "python", "-c", code)
    assert done.stderr == ""
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_installed_it_runs_the_demo_and_leaves_nothing_behind(installed: Path, elsewhere: Path) -> None:
    done = run(installed, elsewhere, "callgrade", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fail" in done.stdout  # the demo shows a trace that breaks
    assert list(elsewhere.iterdir()) == []
