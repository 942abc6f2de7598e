"""Links between pages lead somewhere, every page is reached from the README, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import BLOCK, PAGES, README, ROOT

FILES = [ROOT / name for name in ("SECURITY.md", "CHANGELOG.md", "calibration/README.md")]
FILES += [ROOT / page.path for page in PAGES]


def prose(file: Path) -> str:
    return BLOCK.sub("", file.read_text("utf-8"))


def links(file: Path) -> list[tuple[Path, str]]:
    """Where the relative links of a file lead: to which file, and to which heading of it."""
    targets = [one.partition("#") for one in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(file))]
    return [((file.parent / path).resolve() if path else file, anchor) for path, _, anchor in targets]


def anchors(file: Path) -> set[str]:
    """The names by which headings are linked to: in lower case, without punctuation, with hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", prose(file), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_relative_links_lead_to_files_and_headings_that_exist(file: Path):
    lost = [(path, anchor) for path, anchor in links(file) if not path.exists()]
    lost += [
        (path, anchor) for path, anchor in links(file) if anchor and path.is_file() and anchor not in anchors(path)
    ]
    assert lost == []


def test_every_page_is_reached_from_the_readme():
    reached, ahead = set[Path](), [ROOT / README.path]
    while ahead:
        file = ahead.pop()
        if file.suffix == ".md" and file not in reached:
            reached.add(file)
            ahead += [path for path, _ in links(file)]
    assert reached >= {ROOT / page.path for page in PAGES}


def test_the_manual_lists_every_page():
    listed = {path for path, _ in links(ROOT / "docs" / "index.md")}
    assert listed >= {file for file in (ROOT / "docs").glob("*.md") if file.name != "index.md"}


def test_the_readme_stays_short():
    assert len(README.text.splitlines()) <= 150
