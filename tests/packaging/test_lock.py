from __future__ import annotations

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
