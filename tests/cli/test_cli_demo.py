"""The demo: what it shows must be what scoring says, readable at any width, and free of colour where nobody sees it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import service
from service.cli.commands.demo import list_demo_cases
from tests.cli.cli_run import Run

CASES = list_demo_cases()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_every_case_is_told_with_the_step_that_broke(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    parts = re.split(r"^\d+\. ", ran.out, flags=re.MULTILINE)[1:]
    assert len(parts) == len(CASES)
    for case, part in zip(CASES, parts, strict=True):
        report = service.score(case.request)  # type: ignore[arg-type]
        assert part.startswith(case.title)
        broke = re.findall(r"=> failed at (\w+)", part)
        assert broke == ([report.first_failing_stage] if report.first_failing_stage else [])
        for stage in report.stages:
            verdict = "n/a" if stage.verdict == "not_applicable" else stage.verdict
            applies = stage.verdict != "not_applicable" or stage.stage not in ("sequence", "effect")
            assert bool(re.search(rf"^{stage.stage} +{verdict} ", part, re.MULTILINE)) == applies


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_screen_and_none_is_coloured(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = run("demo")
    assert max(map(len, ran.lines)) <= min(width, 120)
    assert "\x1b" not in ran.out


def test_the_demo_covers_every_step_and_both_verdicts() -> None:
    reports = [service.score(case.request) for case in CASES]  # type: ignore[arg-type]
    broke = {report.first_failing_stage for report in reports}
    assert broke == {None, "decide", "select", "arguments", "integrate", "sequence"}
    assert {report.verdict for report in reports} >= {"pass", "fail"}
    assert len({report.trace_id for report in reports}) == len(CASES)


def test_every_finding_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = " ".join(run("demo").out.split())
    for case in CASES:
        for finding in service.score(case.request).findings():  # type: ignore[arg-type]
            assert finding.message[:40] in shown
    assert "callgrade serve" in shown


def test_saved_cases_score_as_shown(run: Run, tmp_path: Path) -> None:
    saved = run("demo", "--save", "cases.jsonl")
    assert saved.code == 0
    written = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()]
    assert written == [case.request for case in CASES]
    assert run("score", "cases.jsonl").code == 2
