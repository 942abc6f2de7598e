"""SECURITY.md names settings, commands and files that are there."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from service.settings import list_settings
from service.store.access.keys import SCOPES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
CODE = re.findall(r"`([^`]+)`", TEXT)


def test_its_settings_are_those_of_the_service() -> None:
    known = [name for name, _, _ in list_settings()]
    named = [one for one in CODE if re.fullmatch(r"[A-Z_*]*_[A-Z_*]+", one)]
    assert len(named) > 5
    assert [one for one in named if not any(fnmatch(name, one) for name in known)] == []


def test_its_files_are_there() -> None:
    files = [one for one in CODE if re.fullmatch(r"[\w./-]+\.(yaml|toml|md)", one)]
    assert files
    assert [one for one in files if not (ROOT / one).exists()] == []


def test_the_readme_leads_to_it_and_its_scopes_are_known() -> None:
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text("utf-8")
    assert {"metrics", "admin"} <= set(CODE) & set(SCOPES)
