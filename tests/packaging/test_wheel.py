from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from service import __version__


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


@pytest.mark.parametrize(
    "name",
    [
        "service/py.typed",
        "service/_data/rubrics/four_step.yaml",
        "service/_data/rubrics/judges/result_groundedness.yaml",
    ],
)
def test_it_holds_what_the_program_reads(wheel: Path, name: str) -> None:
    assert name in zipfile.ZipFile(wheel).namelist()


def test_it_names_its_command_and_its_plugin(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
    assert archive.read(name).decode().split() == [
        *("[console_scripts]", "callgrade", "=", "service.cli:main"),
        *("[pytest11]", "pytest_callgrade", "=", "pytest_callgrade"),
    ]


def test_its_metadata_are_those_of_the_project(wheel: Path, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    found = email.message_from_string(archive.read(name).decode())
    assert (found["Name"], found["Version"], found["Summary"]) == ("callgrade", __version__, project["description"])
    assert (found["Requires-Python"], found["License-Expression"]) == (project["requires-python"], project["license"])
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload() == (root / "README.md").read_text("utf-8")
    extras = project["optional-dependencies"]
    assert set(found.get_all("Provides-Extra", [])) == set(extras)
    needed = [*project["dependencies"], *[f"{one}; extra == {name!r}" for name in extras for one in extras[name]]]
    assert {_normalize(one) for one in found.get_all("Requires-Dist", [])} == {_normalize(one) for one in needed}


def _normalize(requirement: str) -> str:
    """Without spaces, and its bounds in order."""
    wanted, _, marker = requirement.replace(" ", "").partition(";")
    name = re.match(r"[\w.\[\]-]+", wanted)
    assert name is not None
    return f"{name[0]}{sorted(wanted[name.end() :].split(','))}{marker}"


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
    done = run(installed, elsewhere, "python", "-c", "import service; print(service.__file__)")
    assert done.stderr == ""
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_installed_it_finds_its_rubrics(installed: Path, elsewhere: Path) -> None:
    code = "from service.reading.packaged_files import find_resource; print(find_resource('rubrics', 'four_step.yaml'))"
    done = run(installed, elsewhere, "python", "-c", code)
    assert done.stderr == ""
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_installed_it_runs_the_demo_and_leaves_nothing_behind(installed: Path, elsewhere: Path) -> None:
    done = run(installed, elsewhere, "callgrade", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fail" in done.stdout  # the demo shows a trace that breaks
    assert list(elsewhere.iterdir()) == []
