"""`callgrade summarize` and `callgrade compare` as a shell sees them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import Report, report_json
from service.cli.commands.score import choose_code
from service.cli.tally import Tally
from service.core.report import CalibrationCounts
from service.reporting.comparison import compare_reports
from service.reporting.summaries import render_json, summarize_reports
from tests.cli.cli_run import Run
from tests.reporting.report_sets import report_of, reports_of
from tests.reporting.test_labelled_summary import reports as labelled_reports

REPORTS = reports_of()


def write(path: Path, reports: Iterable[Report]) -> Path:
    path.write_bytes(b"".join(report_json(report) + b"\n" for report in reports))
    return path


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return write(tmp_path / "reports.ndjson", REPORTS)


def test_from_score_to_summary(run: Run, tmp_path: Path) -> None:
    """The reports that `score` writes are those that `summarize` reads, also as one list, and from standard input."""
    run("demo", "--save", "cases.jsonl")
    written = {form: run("score", "cases.jsonl", "-f", form).raw for form in ("ndjson", "json")}
    (tmp_path / "reports.json").write_bytes(written["json"])
    found = run("summarize", "-", "--format", "json", stdin=written["ndjson"])
    assert (found.code, json.loads(found.raw)["rates"]["cases"]) == (0, 11)
    assert run("summarize", "reports.json", "--format", "json").raw == found.raw


def test_json_is_what_the_library_gives(run: Run, reports: Path) -> None:
    ran = run("summarize", reports, "-f", "json", "-a", "pass_rate >= 0.1")
    assert ran.code == 0
    assert ran.raw == render_json(summarize_reports(REPORTS, assertions=["pass_rate >= 0.1"])) + b"\n"
    sliced = json.loads(run("summarize", reports, "-f", "json", "--by", "difficulty").raw)
    assert [one["value"] for one in sliced["slices"]] == ["easy", "hard"]


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
    passing = [replace(one, calibration=CalibrationCounts(*counts)) for one in REPORTS if one.verdict == "pass"]
    asked = ("summarize", write(tmp_path / "reports.ndjson", passing), "-a", "pass_rate >= 0.1")
    assert run(*asked).code == 0
    ran = run(*asked, "--require-certified")
    assert (ran.code, "not certified: judges (" in ran.err) == (code, code == 3)
    tally = Tally()
    for one in passing:
        tally.add_report(one, "x")
    assert choose_code(tally, require_certified=True) == code


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["-a", "pass_rate >= 0.42"], 0, ""),
        (
            ["-a", "pass_rate >= 0.95"],
            2,
            "failed: pass_rate >= 0.95: pass_rate is 0.4286 over 7 cases; failed at decide",
        ),
        (["-a", "result_groundedness.score >= 0.9 for_at_least 85% of cases"], 2, "could be measured"),
        (["-a", "pas_rate >= 0.9"], 4, "no metric pas_rate; did you mean pass_rate"),
        (["-a", "pass_rate"], 4, "not an assertion"),
        (["--pass-k", "2"], 4, "no case names its task"),
    ],
)
def test_exit_codes(run: Run, reports: Path, args: list[str], code: int, told: str) -> None:
    ran = run("summarize", reports, *args)
    assert (ran.code, told in ran.err) == (code, True), ran.err


def test_markdown_and_the_table_show_every_part(run: Run, reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("summarize", reports, "-f", "markdown", "-a", "pass_rate >= 0.95")
    assert (ran.code, ran.lines[0]) == (2, "### Gate: failed at decide")
    tables = [line for line in ran.lines if line.startswith("|")]
    row = "| pass\\_rate \\>= 0.95 | failed | 0.43 | 7 | pass\\_rate is 0.4286 over 7 cases (failed at decide) |"
    assert row in tables
    assert all(line.count(" | ") >= 2 and line.endswith(" |") for line in tables)
    monkeypatch.setenv("COLUMNS", "120")
    out = run("summarize", reports, "-a", "pass_rate > 0").out
    titles = ("Gate: passed", "Stages", "Call or no call", "Tools", "Slices", "Warnings")
    assert [title for title in titles if title not in out] == []


def test_names_stay_whole_on_a_narrow_terminal(run: Run, tmp_path: Path) -> None:
    told = write(tmp_path / "reports.jsonl", [*labelled_reports(), *reports_of()])
    names = [line.split(" ")[0] for line in run("summarize", told).lines]
    assert {"argument_plausibility", "tool_name"} <= set(names)


def test_text_of_a_report_cannot_write_on_the_terminal(run: Run, tmp_path: Path) -> None:
    tool = "re\x1b[31m[red]\nfund"
    case = {"id": "x", "expected": {"calls": [{"tool": tool}]}, "calls": []}
    file = write(tmp_path / "x.ndjson", [report_of(case, [tool])])
    for form in ("table", "markdown"):
        out = run("summarize", file, "-f", form).out
        assert ("\x1b" in out, "x1b" in out) == (False, True)


def test_an_unreadable_record_is_told_and_the_rest_summed_up(run: Run, reports: Path) -> None:
    bad = b'{"error": {"detail": "no messages"}}\n{"trace_id": "x"}\nnot json\n'
    reports.write_bytes(bad + reports.read_bytes())
    ran = run("summarize", reports, "-f", "json", "-a", "pass_rate > 0")
    assert (ran.code, json.loads(ran.raw)["rates"]["cases"]) == (5, 8)
    assert "a record that could not be scored: no messages" in ran.err
    assert "reports.ndjson:3" in ran.err


def test_rates_are_corrected_by_labels(run: Run, tmp_path: Path) -> None:
    told, given = write(tmp_path / "reports.jsonl", labelled_reports()), tmp_path / "labels.jsonl"
    verdicts: list[Any] = ["pass", True, "fail", "pass"]
    labels = [
        {"trace_id": f"t{n}", "criterion": "argument_plausibility", "label": one} for n, one in enumerate(verdicts)
    ]
    given.write_text("".join([json.dumps(one) + "\n" for one in labels]))
    [one] = json.loads(run("summarize", told, "--labels", given, "--format", "json").out)["corrected"]
    assert (one["labelled"], one["unlabelled"], one["naive"]) == (4, 4, 0.625)
    assert round(one["corrected"]["value"], 6) == 0.827778
    markdown = run("summarize", told, "--labels", given, "--format", "markdown").out
    assert "## Corrected by labels" in markdown
    assert "| argument\\_plausibility of reports | 4 | 4 | 0.625 |" in markdown
    assert "label next, at random: t" in markdown
    assert "Corrected by labels" not in run("summarize", told, "--format", "markdown").out
    both = [{"annotator": "ana", "label": "pass"}, {"annotator": "ben", "label": "fail"}]
    items = [{"id": f"t{n}", "criterion": "argument_plausibility", "group": "g", "labels": both} for n in range(8)]
    given.write_text("".join(json.dumps({**one, "payload": 1, "answer": "1"}) + "\n" for one in items))
    found = run("summarize", told, "--labels", given, "--format", "markdown").out  # a labelled set will do
    assert "| argument\\_plausibility of reports | 8 | 0 |" in found
    assert "not corrected, because nothing is left to correct" in found
    settled = {**items[0], "labels": [*both[1:], {"annotator": "boss", "label": "pass", "decides": True}]}
    step = {**items[1], "id": "batch_1/1#0", "run": "batch_1/1", "trace": {"id": "t1"}, "labels": both[1:]}
    given.write_text("".join(json.dumps(one) + "\n" for one in (settled, items[1], step)))
    whole, call = json.loads(run("summarize", told, "--labels", given, "--format", "json").out)["corrected"]
    assert (whole["unit"], whole["labelled"], whole["humans"]["value"]) == ("report", 2, 1.0)
    assert (call["unit"], call["labelled"]) == ("step", 1)
    given.write_text(json.dumps(labels[0]) + "\n" + json.dumps({**labels[1], "label": "maybe"}))
    found = run("summarize", told, "--labels", given)
    assert (found.code, "labels.jsonl:2: /label" in found.err) == (5, True)


def test_compare(run: Run, reports: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = {"id": "r2", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["refund"]}
    better = [report_of(case) if report.trace_id == "r2" else report for report in REPORTS]
    write(tmp_path / "b.ndjson", better)
    found = run("compare", reports, "b.ndjson", "-f", "json")
    assert (found.code, found.raw) == (0, render_json(compare_reports(REPORTS, better)) + b"\n")
    assert [(one["case"], one["kind"]) for one in json.loads(found.raw)["changes"]] == [("r2", "newly_passing")]
    for form in ("table", "markdown"):
        told = run("compare", reports, "b.ndjson", "-f", form)
        assert (told.code, "newly passing" in told.out, "Differences" in told.out) == (0, True, True)
    write(tmp_path / "b.ndjson", [report_of({"id": "other", "calls": []})])
    assert run("compare", reports, "b.ndjson").code == 5
