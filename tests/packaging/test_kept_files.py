"""What may stand in a file of the project: no machine's paths, no index but the public one, nothing huge."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

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
