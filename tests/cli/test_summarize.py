"""`callgrade summarize` and `callgrade compare` as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service import Report, report_json
from service.reporting.comparison import compare_reports
from service.reporting.summaries import render_json, summarize_reports
from tests.cli.cli_run import Run
from tests.reporting.report_sets import report_of, reports_of

REPORTS = reports_of()


def lines(reports: list[Report]) -> bytes:
    return b"".join(report_json(report) + b"\n" for report in reports)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "reports.ndjson"
    path.write_bytes(lines(REPORTS))
    return path


def test_from_score_to_summary(run: Run, tmp_path: Path) -> None:
    """The reports that `score` writes are those that `summarize` reads, also as one list."""
    run("demo", "--save", "cases.jsonl")
    for form in ("ndjson", "json"):
        (tmp_path / f"reports.{form}").write_bytes(run("score", "cases.jsonl", "-f", form).raw)
    found = [run("summarize", f"reports.{form}", "--format", "json") for form in ("ndjson", "json")]
    assert [one.code for one in found] == [0, 0]
    assert found[0].raw == found[1].raw
    assert json.loads(found[0].raw)["rates"]["cases"] == 11


def test_json_is_what_the_library_gives(run: Run, reports: Path) -> None:
    ran = run("summarize", reports, "-f", "json", "-a", "pass_rate >= 0.1")
    assert ran.code == 0
    assert ran.raw == render_json(summarize_reports(REPORTS, assertions=["pass_rate >= 0.1"])) + b"\n"


@pytest.mark.parametrize(
    ("assertion", "code", "told"),
    [
        ("pass_rate >= 0.42", 0, ""),
        (
            "pass_rate >= 0.95",
            2,
            "failed: pass_rate >= 0.95: pass_rate is 0.4286 over 7 cases; failed at decide",
        ),
        ("result_groundedness.score >= 0.9 for_at_least 85% of cases", 2, "could be measured"),
        ("pas_rate >= 0.9", 4, "no metric pas_rate; near it: pass_rate"),
        ("pass_rate", 4, "not an assertion"),
    ],
)
def test_exit_codes(run: Run, reports: Path, assertion: str, code: int, told: str) -> None:
    ran = run("summarize", reports, "--assert", assertion)
    assert ran.code == code
    assert told in ran.err


def test_markdown(run: Run, reports: Path) -> None:
    ran = run("summarize", reports, "-f", "markdown", "-a", "pass_rate >= 0.95")
    assert (ran.code, ran.lines[0]) == (2, "### Gate: failed at decide")
    tables = [line for line in ran.lines if line.startswith("|")]
    assert (
        "| pass\\_rate \\>= 0.95 | failed | 0.43 | 7 | pass\\_rate is 0.4286 over 7 cases (failed at decide) |"
        in tables
    )
    assert all(line.count(" | ") >= 2 and line.endswith(" |") for line in tables)


def test_text_of_a_report_cannot_write_on_the_terminal(run: Run) -> None:
    tool = "re\x1b[31m[red]\nfund"
    case = {"id": "x", "expected": {"calls": [{"tool": tool}]}, "calls": []}
    for form in ("table", "markdown"):
        out = run("summarize", "-", "-f", form, stdin=lines([report_of(case, [tool])])).out
        assert "\x1b" not in out
        assert "x1b" in out


def test_an_unreadable_record_is_told_and_the_rest_summed_up(run: Run, reports: Path) -> None:
    bad = b'{"error": {"detail": "no messages"}}\n{"trace_id": "x"}\nnot json\n'
    reports.write_bytes(bad + reports.read_bytes())
    ran = run("summarize", reports, "-f", "json", "-a", "pass_rate > 0")
    assert (ran.code, json.loads(ran.raw)["rates"]["cases"]) == (5, 8)
    assert "a record that could not be scored: no messages" in ran.err
    assert "reports.ndjson:3" in ran.err


def test_compare(run: Run, reports: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = {"id": "r2", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["refund"]}
    better = [report_of(case) if report.trace_id == "r2" else report for report in REPORTS]
    (tmp_path / "b.ndjson").write_bytes(lines(better))
    found = run("compare", reports, "b.ndjson", "-f", "json")
    assert (found.code, found.raw) == (0, render_json(compare_reports(REPORTS, better)) + b"\n")
    assert [(one["case"], one["kind"]) for one in json.loads(found.raw)["changes"]] == [("r2", "fixed")]
    for form in ("table", "markdown"):
        told = run("compare", reports, "b.ndjson", "-f", form)
        assert (told.code, "fixed" in told.out, "Differences" in told.out) == (0, True, True)
