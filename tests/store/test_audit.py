"""The audit log: files that changed are told, and no entry grows beyond its bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.fits.own_files import MAX_FILES_NAMED, note_own_files
from service.settings import Settings
from service.store.access.audit import Audit
from service.store.database import Database


@pytest.fixture
def audit(database: Database) -> Audit:
    return Audit(database)


def told(audit: Audit) -> list[tuple[str, str, str, str, str]]:
    found = audit.page(limit=1_000).data
    return [(one.who, one.origin, one.act, one.tenant, one.target) for one in reversed(found)]


def test_files_are_told_when_they_change(database: Database, audit: Audit, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    note_own_files(settings, database)
    assert told(audit) == []
    (tmp_path / "rubrics/judges").mkdir(parents=True)
    (tmp_path / "fits").mkdir()
    steps = [
        ("rubrics/own.yaml", "a", "rubrics.change"),
        ("rubrics/judges/own.yaml", "a", "rubrics.change"),
        ("rubrics/own.yaml", "b", "rubrics.change"),
        ("fits/0.json", "a", "fits.change"),
    ]
    for name, text, _ in steps:
        (tmp_path / name).write_text(text)
        for _ in range(2):
            note_own_files(settings, database)
    (tmp_path / "fits/0.json").unlink()
    note_own_files(settings, database)
    assert [act for _, _, act, _, _ in told(audit)] == [*[act for _, _, act in steps], "fits.change"]
    newest, before = audit.page(limit=2).data
    assert newest.detail == {"files": {}}
    assert list(before.detail["files"]) == [str(tmp_path / "fits/0.json")]  # type: ignore[call-overload]


def test_an_entry_of_many_files_is_bounded_and_still_tells_of_a_change(
    database: Database, audit: Audit, tmp_path: Path
) -> None:
    (tmp_path / "fits").mkdir()
    for number in range(MAX_FILES_NAMED + 2):
        (tmp_path / f"fits/{number:04}.json").write_text("a")
    settings = Settings(home=tmp_path)
    note_own_files(settings, database)
    (tmp_path / f"fits/{MAX_FILES_NAMED + 1:04}.json").write_text("b")
    note_own_files(settings, database)
    first, second = (entry.detail["files"] for entry in audit.page(limit=9).data)
    assert [len(files) for files in (first, second)] == [MAX_FILES_NAMED + 1] * 2  # type: ignore[arg-type]
    assert "2 more" in first  # type: ignore[operator]
