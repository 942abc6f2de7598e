"""Exit codes and messages, a case for each: tests/data/cli/exit_codes.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.cli_run import Run

TABLE = yaml.safe_load((Path(__file__).parents[1] / "data" / "cli" / "exit_codes.yaml").read_text("utf-8"))
cases = pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in TABLE["cases"]])


def filled(text: str) -> bytes:
    for name, record in TABLE["records"].items():
        text = text.replace("{" + name + "}", record)
    return text.encode()


@cases
def test_exits_as_the_table_says(
    case: dict[str, Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in case.get("files", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(filled(text))
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    ran = run(*case["args"], stdin=filled(case.get("stdin", "")))
    assert ran.code == case["code"], ran
    assert [text for text in case.get("out", []) if text not in ran.out] == [], ran.out
    assert [text for text in case.get("err", []) if text not in ran.err] == [], ran.err
    assert "Traceback" not in ran.err
    if case.get("silent"):
        assert ran.err == ""


def test_a_fault_of_ours_says_so_and_where(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr("service.engine.Engine.answer", broken)
    (tmp_path / "a").write_bytes(filled("{pass}"))
    ran = run("score", "a")
    assert (ran.code, ran.err.splitlines()) == (
        1,
        ["error: this is a bug in callgrade: KeyError: 'boom' (at a:1)", "Set CALLGRADE_DEBUG=1 to see the traceback."],
    )
    monkeypatch.setenv("CALLGRADE_DEBUG", "1")
    with pytest.raises(KeyError, match="boom"):
        run("score", "a")
