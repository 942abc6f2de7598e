"""`callgrade compare --fail-on-regression`, with the exit codes that a pull request waits for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_run import Run

GOOD: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
    "expected": {"calls": "none"},
}
BAD = {**GOOD, "expected": {"calls": "some"}}
OPEN: dict[str, Any] = {"events": [{"user": "Hi"}, {"call": {"name": "greet"}}]}


def write(run: Run, folder: Path, name: str, *records: dict[str, Any]) -> str:
    text = "\n".join(json.dumps({"id": f"c{n}", **record}) for n, record in enumerate(records))
    (folder / "in.jsonl").write_text(text, "utf-8")
    run("score", "in.jsonl", "--format", "ndjson", "--output", name)
    return name


@pytest.mark.parametrize(
    ("second", "code", "told"),
    [
        ([GOOD] * 20, 0, "within noise: pass rate changed by +0.000"),
        ([GOOD] * 8 + [BAD] * 12, 2, "regressed: pass rate changed by -0.600"),
        ([GOOD] * 19 + [BAD], 2, "regressed: c19: decide passed before and fails now: "),
        ([GOOD] * 19, 3, "undecided: c19: missing in the second run"),
        ([OPEN] * 20, 3, "undecided: pass rate changed by something from -1.000"),
        ([GOOD] * 8, 3, "undecided: pass rate changed by something from"),
    ],
)
def test_the_exit_code_says_whether_it_became_worse(
    run: Run, tmp_path: Path, second: list[dict[str, Any]], code: int, told: str
) -> None:
    files = [write(run, tmp_path, "a.ndjson", *[GOOD] * 20), write(run, tmp_path, "b.ndjson", *second)]
    ran = run("compare", *files, "--fail-on-regression")
    assert ran.code == code
    assert told in ran.out
    assert run("compare", *files).code == 0


def test_github_gets_an_annotation_and_a_summary(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    files = [write(run, tmp_path, "a.ndjson", *[GOOD] * 20), write(run, tmp_path, "b.ndjson", *[BAD] * 20)]
    ran = run("compare", *files, "--fail-on-regression", "--format", "github")
    assert ran.lines[0].startswith("::error title=callgrade%3A pass rate regressed::pass rate changed by -1.000")
    assert "Changed cases" in (tmp_path / "summary.md").read_text("utf-8")
