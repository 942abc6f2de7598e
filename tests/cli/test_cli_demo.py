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
def test_every_case_is_told_with_the_stage_at_which_it_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = run("demo")
    assert (ran.code, ran.err, "\x1b" in ran.out) == (0, "", False)
    assert max(map(len, ran.lines)) <= min(width, 120)
    parts = re.split(r"^\d+\. ", ran.out, flags=re.MULTILINE)[1:]
    broke, verdicts, ids = set[str | None](), set[str](), set[str | None]()
    for case, part in zip(CASES, parts, strict=True):
        report = service.score(case.request)  # type: ignore[arg-type]
        assert part.startswith(case.title)
        stage = report.first_failing_stage
        assert re.findall(r"=> failed at (\w+)", part) == ([stage] if stage else [])
        for one in report.stages:
            verdict = "n/a" if one.verdict == "not_applicable" else one.verdict
            applies = one.verdict != "not_applicable" or one.stage not in ("sequence", "effect")
            assert bool(re.search(rf"^{one.stage} +{verdict} ", part, re.MULTILINE)) == applies
        if width == 120:
            assert [one for one in report.findings() if one.message[:40] not in " ".join(part.split())] == []
        broke, verdicts, ids = broke | {stage}, verdicts | {report.verdict}, ids | {report.trace_id}
    assert broke == {None, "decide", "select", "arguments", "integrate", "sequence"}
    assert (verdicts >= {"pass", "fail"}, len(ids)) == (True, len(CASES))
    assert "callgrade serve" in ran.out


def test_saved_cases_score_as_shown(run: Run, tmp_path: Path) -> None:
    assert run("demo", "--save", "cases.jsonl").code == 0
    written = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()]
    assert written == [case.request for case in CASES]
    assert run("score", "cases.jsonl").code == 2
