"""`callgrade summarize` and `callgrade compare` as a shell sees them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import Report, report_json
from service.cli.commands.score import choose_code
from service.cli.inputs import RecordRequest
from service.cli.scoring import ScoredRecord
from service.cli.tally import Tally
from service.core.report import CalibrationCounts
from service.reading.places import RecordPlace
from service.reading.request import ScoreRequest
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
    ("counts", "code"),
    [
        ((1, 1, 0, 0, 1), 0),
        ((2, 2, 0, 0, 1), 3),
        ((1, 1, 0, 0), 3),
        ((1, 0, 1, 0), 3),
        ((1, 0, 0, 1), 0),  # what is left open decides nothing
    ],
)
def test_verdicts_may_have_to_come_from_certified_fits(
    run: Run, tmp_path: Path, counts: tuple[int, ...], code: int
) -> None:
    passing = [report for report in REPORTS if report.verdict == "pass"]
    reports = [replace(one, calibration=CalibrationCounts(*counts)) for one in passing]
    (tmp_path / "reports.ndjson").write_bytes(lines(reports))
    asked = ("summarize", tmp_path / "reports.ndjson", "-a", "pass_rate >= 0.1")
    assert run(*asked).code == 0
    ran = run(*asked, "--require-certified")
    assert ran.code == code, ran.err
    assert ("judged without a certified fit" in ran.err) is (code == 3)
    tally = Tally()
    for number, one in enumerate(reports, 1):
        record = RecordRequest(RecordPlace("f"), True, {}, {}, ScoreRequest.model_construct(), None)
        tally.add(ScoredRecord(number, record, one))
    assert choose_code(tally, require_certified=True) == code


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
        ("pas_rate >= 0.9", 4, "no metric pas_rate; did you mean pass_rate"),
        ("pass_rate", 4, "not an assertion"),
    ],
)
def test_exit_codes(run: Run, reports: Path, assertion: str, code: int, told: str) -> None:
    ran = run("summarize", reports, "--assert", assertion)
    assert ran.code == code
    assert told in ran.err


def test_a_gate_fails_at_the_stage_of_its_first_failure(run: Run, reports: Path) -> None:
    asserted = ["call_or_no_call_precision.score >= 0.95 for at least 95% of cases", "decide.call.recall >= 0.8"]
    ran = run("summarize", reports, *[word for text in asserted for word in ("-a", text)], "-f", "json")
    assert ran.code == 2
    gate = json.loads(ran.raw)["gate"]
    assert (gate["passed"], gate["first_failing_stage"]) == (False, "decide")
    assert [one["status"] for one in gate["results"]] == ["failed", "passed"]


def test_markdown(run: Run, reports: Path) -> None:
    ran = run("summarize", reports, "-f", "markdown", "-a", "pass_rate >= 0.95")
    assert (ran.code, ran.lines[0]) == (2, "### Gate: failed at decide")
    tables = [line for line in ran.lines if line.startswith("|")]
    assert (
        "| pass\\_rate \\>= 0.95 | failed | 0.43 | 7 | pass\\_rate is 0.4286 over 7 cases (failed at decide) |"
        in tables
    )
    assert all(line.count(" | ") >= 2 and line.endswith(" |") for line in tables)


def test_the_table_shows_every_part(run: Run, reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = run("summarize", reports, "-a", "pass_rate > 0").out
    for title in (
        "Gate: passed",
        "Stages",
        "Call or no call",
        "Tools",
        "Slices",
        "Warnings",
    ):
        assert title in out


def test_text_of_a_report_cannot_write_on_the_terminal(run: Run) -> None:
    tool = "re\x1b[31m[red]\nfund"
    case = {"id": "x", "expected": {"calls": [{"tool": tool}]}, "calls": []}
    for form in ("table", "markdown"):
        out = run("summarize", "-", "-f", form, stdin=lines([report_of(case, [tool])])).out
        assert "\x1b" not in out
        assert "x1b" in out


def test_slices(run: Run, reports: Path) -> None:
    found = json.loads(run("summarize", reports, "-f", "json", "--by", "difficulty").raw)
    assert [one["value"] for one in found["slices"]] == ["easy", "hard"]


def test_an_unreadable_record_is_told_and_the_rest_summed_up(run: Run, reports: Path) -> None:
    bad = b'{"error": {"detail": "no messages"}}\n{"trace_id": "x"}\nnot json\n'
    reports.write_bytes(bad + reports.read_bytes())
    ran = run("summarize", reports, "-f", "json", "-a", "pass_rate > 0")
    assert (ran.code, json.loads(ran.raw)["rates"]["cases"]) == (5, 8)
    assert "a record that could not be scored: no messages" in ran.err
    assert "reports.ndjson:3" in ran.err


USAGE: list[tuple[list[str], int, str]] = [
    (["nowhere.ndjson"], 5, "no report could be read"),
    (["reports.ndjson", "--pass-k", "2"], 4, "no case names its task"),
]


@pytest.mark.parametrize(("args", "code", "told"), USAGE)
def test_what_was_called_wrongly(run: Run, reports: Path, args: list[str], code: int, told: str) -> None:
    assert reports.exists()
    ran = run("summarize", *args)
    assert ran.code == code
    assert told in ran.err


def test_compare(run: Run, reports: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = {"id": "r2", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["refund"]}
    better = [report_of(case) if report.trace_id == "r2" else report for report in REPORTS]
    (tmp_path / "b.ndjson").write_bytes(lines(better))
    found = run("compare", reports, "b.ndjson", "-f", "json")
    assert (found.code, found.raw) == (0, render_json(compare_reports(REPORTS, better)) + b"\n")
    assert [(one["case"], one["kind"]) for one in json.loads(found.raw)["changes"]] == [("r2", "newly_passing")]
    for form in ("table", "markdown"):
        told = run("compare", reports, "b.ndjson", "-f", form)
        assert (told.code, "newly passing" in told.out, "Differences" in told.out) == (0, True, True)


def test_runs_that_share_nothing_cannot_be_compared(run: Run, reports: Path, tmp_path: Path) -> None:
    (tmp_path / "b.ndjson").write_bytes(lines([report_of({"id": "other", "calls": []})]))
    assert run("compare", reports, "b.ndjson").code == 5
