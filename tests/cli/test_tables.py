"""Runs of the command, a row for each: tests/data/cli/*.yaml."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.asking.own_judges import OWN_JUDGES
from tests.cli.cli_run import Run

TABLES = [
    yaml.safe_load(file.read_text("utf-8")) for file in sorted((Path(__file__).parents[1] / "data/cli").iterdir())
]
RECORDS: dict[str, str] = {name: text for table in TABLES for name, text in table["records"].items()}
ROWS = [pytest.param(row, id=row["name"]) for table in TABLES for row in table["cases"]]


def filled(text: str) -> bytes:
    for name, record in RECORDS.items():
        text = text.replace("{" + name + "}", record)
    return text.encode()


@pytest.mark.parametrize("row", ROWS)
def test_it_runs_as_the_table_says(
    row: dict[str, Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in row.get("files", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(filled(text))
    for name, value in row.get("env", {}).items():
        monkeypatch.setenv(name, value)
    judges = dict(OWN_JUDGES)
    args = row["args"]
    ran = run(*(shlex.split(args) if isinstance(args, str) else args), stdin=filled(row.get("stdin", "")))
    OWN_JUDGES.clear()
    OWN_JUDGES.update(judges)
    assert ran.code == row["code"], ran
    out, err = (" ".join(text.split()) if row.get("folded") else text for text in (ran.out, ran.err))
    assert [text for text in row.get("out", []) if text not in out] == [], ran.out
    assert [text for text in row.get("err", []) if text not in err] == [], ran.err
    assert [text for text in row.get("absent", []) if text in out + err] == [], ran
    assert "Traceback" not in ran.err
    if row.get("silent"):
        assert ran.err == ""


def test_a_fault_of_ours_says_so_and_where(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr("service.engine.Engine.answer", broken)
    (tmp_path / "a").write_bytes(filled("{pass}"))
    ran = run("score", "a")
    told = "error: this is a bug in callgrade: KeyError: 'boom' (at a:1)", "Set CALLGRADE_DEBUG=1 to see the traceback."
    assert (ran.code, ran.err.splitlines()) == (1, [*told])
    monkeypatch.setenv("CALLGRADE_DEBUG", "1")
    with pytest.raises(KeyError, match="boom"):
        run("score", "a")
