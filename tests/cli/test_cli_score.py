"""`callgrade score`: the forms of its output, what it guesses, what the command line overrides."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import service
from service.api.app import create_app
from service.cli.ci import escape_forbidden
from service.cli.commands.demo import DemoCase, list_demo_cases
from service.intake.reading import FORMATS
from tests.cli.cli_run import Run

CASES = list_demo_cases()
cases = pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])

PASS: dict[str, Any] = {
    "id": "p",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
    "expected": {"calls": "none"},
}
FAIL = PASS | {"id": "f", "expected": {"calls": "some"}}
UNDECIDED: dict[str, Any] = {"id": "a", "events": [{"user": "Hi"}, {"call": {"name": "greet"}}]}
CALLS: dict[str, Any] = {
    "id": "c",
    "events": [
        {"user": "Hi"},
        {"call": {"name": "greet", "arguments": {"name": "Ann", "loud": True}}, "result": "hello"},
        {"call": {"name": "greet", "arguments": [1]}, "result": "full", "is_error": True},
        {"call": {"name": "greet", "arguments": {}}},
        {"assistant": "Hello"},
    ],
    "expected": {"calls": "none"},
}
NOTHING: dict[str, Any] = {"id": "n", "messages": []}


def lines(*records: Any) -> bytes:
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)


@pytest.fixture(scope="module")
def post() -> Callable[[bytes], bytes]:
    """What HTTP answers to a body."""
    app = create_app()

    async def post(body: bytes) -> bytes:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            answer = await client.post("/v1/score", content=body, headers={"content-type": "application/json"})
        return answer.content

    return lambda body: asyncio.run(post(body))


@cases
def test_library_http_and_command_line_give_the_same_bytes(
    case: DemoCase, run: Run, post: Callable[[bytes], bytes]
) -> None:
    body = json.dumps(case.request).encode()
    library = service.report_json(service.score(case.request))
    assert post(body) == library
    for form in ("json", "ndjson"):
        assert run("score", "-", "--format", form, stdin=body).raw == library + b"\n"


def test_every_format_of_a_trace_can_be_named(run: Run) -> None:
    assert f"auto, {', '.join(FORMATS)}" in run("score", "a", "--input-format", "xml").err


def test_several_reports_are_a_list_in_the_order_of_the_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(PASS, b"{", FAIL))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps([FAIL, PASS], indent=1).encode()))
    by_line = run("score", "a.jsonl", "b.json.gz", "--format", "ndjson")
    items = [json.loads(line) for line in by_line.lines]
    assert [item.get("trace_id") for item in items] == ["p", None, "f", "f", "p"]
    error = items[1]["error"]
    assert (error["source"], error["line"], [e["pointer"] for e in error["errors"]]) == ("a.jsonl", 2, [""])
    as_list = run("score", "a.jsonl", "b.json.gz", "--format", "json")
    assert json.loads(as_list.out) == items
    assert by_line.code == as_list.code == 5


def test_a_single_bad_record_is_an_error_and_no_list(run: Run) -> None:
    ran = run("score", "-", "--format", "json", stdin=b'{"messages": [{"role": "x"}]}')
    assert ran.code == 5
    assert json.loads(ran.out)["error"]["errors"][0]["pointer"] == "/messages/0/role"


def test_a_file_of_many_bad_records_loses_none(run: Run) -> None:
    ran = run("score", "-", "--format", "ndjson", stdin=b"{x}\n" * 50)
    assert [json.loads(line)["error"]["line"] for line in ran.lines] == list(range(1, 51))
    assert ran.err.count("error: stdin:") == 20
    assert "... and 30 more records" in ran.err


def test_guessed_formats_are_counted_and_named_ones_are_not(run: Run) -> None:
    named = {"trace": {"format": "openai", "messages": []}}
    ran = run("score", "-", stdin=lines(PASS, FAIL, UNDECIDED, named))
    assert "guessed format: callgrade (1 trace), openai (2 traces)" in ran.err
    assert "guessed" not in run("score", "-", stdin=lines(named)).err
    assert "guessed" not in run("score", "-", "--input-format", "openai", stdin=lines(PASS)).err


def test_the_named_format_is_for_traces_that_do_not_name_theirs(run: Run) -> None:
    events = {"events": UNDECIDED["events"]}
    assert run("score", "-", "-i", "callgrade", stdin=lines(events)).code == 3
    assert run("score", "-", "-i", "tau", stdin=lines(events)).code == 5
    assert run("score", "-", "-i", "tau", stdin=lines(events | {"format": "callgrade"})).code == 3


def test_what_stands_beside_a_bare_trace_is_the_requests(run: Run) -> None:
    beside = PASS | {"tags": {"run": "7"}, "rubric": "four_step@2"}
    report = json.loads(run("score", "-", "--format", "json", stdin=lines(beside)).out)
    assert report["tags"] == {"run": "7"}
    assert report["verdict"] == "pass"
    # Tags of another shape are the trace's own and nobody's business here.
    assert run("score", "-", stdin=lines(PASS | {"tags": ["x"]})).code == 0


@pytest.mark.parametrize(("name", "meant"), [("expectd", "expected"), ("expect", "expected"), ("rubrik", "rubric")])
def test_a_member_that_is_nearly_the_requests_is_an_error(run: Run, name: str, meant: str) -> None:
    ran = run("score", "-", stdin=lines({"messages": [{"role": "user", "content": "Hi."}], name: {"calls": []}}))
    assert ran.code == 5
    assert f"/{name}: no field of that name is known next to a trace; did you mean '{meant}'?" in ran.err


def test_a_line_of_a_batch_is_scored_as_it_is_and_its_name_is_no_part_of_the_report(run: Run) -> None:
    line = {"trace": {"format": "openai", "messages": [], "id": "its own"}}
    for plain in (line, PASS):
        named = plain | {"custom_id": "first"}
        assert "first" in run("score", "-", "-f", "table", stdin=lines(named)).lines[0]
        assert (
            run("score", "-", "-f", "json", stdin=lines(named)).raw
            == run("score", "-", "-f", "json", stdin=lines(plain)).raw
        )
    assert "/custom_id: expected" in run("score", "-", stdin=lines(PASS | {"custom_id": 7})).err


@pytest.mark.parametrize(
    ("name", "text"), [("e.json", '{"calls": "some"}'), ("e.yaml", "calls: some\n"), ("e.txt", '{"calls": "some"}')]
)
def test_an_expectation_from_the_command_line_goes_before_the_records(
    run: Run, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert run("score", "-", stdin=lines(PASS)).code == 0
    assert run("score", "-", "--expected", name, stdin=lines(PASS)).code == 2


def test_expectations_of_single_records_are_not_taken_for_one_of_all(run: Run, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"calls": "some"}\n{"calls": "none"}\n')
    refused = run("score", "-", "--expected", "e.jsonl", stdin=lines(PASS))
    assert refused.code == 4
    assert "give each record its own, as `expected`" in refused.err


def test_a_rubric_file_goes_before_the_records(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "extends: four_step\nid: mine\nthresholds: {fail: 0, warn: 0}\nwithout: [decide]\n"
    )
    ran = run("score", "-", "--rubric", "mine.yaml", "--format", "json", stdin=lines(FAIL | {"rubric": "four_step"}))
    report = json.loads(ran.out)
    assert report["rubric"]["id"] == "mine"
    assert "decide" not in [criterion["id"] for criterion in report["criteria"]]


def test_rubrics_of_the_users_folders_are_known_by_id(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = run("rubrics", "show", "four_step").out.replace("id: four_step", "id: mine", 1)
    (tmp_path / "home" / "rubrics").mkdir(parents=True)
    (tmp_path / "home" / "rubrics" / "mine.yaml").write_text(text)
    assert run("score", "-", "-r", "mine", stdin=lines(PASS)).code == 4
    monkeypatch.setenv("CALLGRADE_HOME", str(tmp_path / "home"))
    assert "mine@2" in run("score", "-", "-r", "mine", stdin=lines(PASS)).out
    assert "mine@2" in run("rubrics", "list").out


def without_times(raw: bytes) -> bytes:
    return re.sub(rb' time="[^"]*"', b"", raw)


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "junit"])
def test_output_goes_to_the_file_and_is_the_same(run: Run, tmp_path: Path, form: str) -> None:
    shown = run("score", "-", "--format", form, stdin=lines(PASS, FAIL))
    written = run("score", "-", "--format", form, "--output", "out", stdin=lines(PASS, FAIL))
    assert written.raw == b""
    assert without_times((tmp_path / "out").read_bytes()) == without_times(shown.raw)
    assert "2 traces scored" in written.err
    assert shown.code == written.code == 2


def test_the_table_has_a_line_for_each_trace_and_a_summary(run: Run) -> None:
    ran = run("score", "-", stdin=lines(PASS, FAIL, UNDECIDED, {"id": "n", "messages": []}, b"[]"))
    rows = {line.split()[0]: line.split()[1:] for line in ran.lines[1:6]}
    assert rows["p"][:4] == ["pass", "1.00", "100%", "-"]
    assert rows["f"][:4] == ["fail", "0.00", "100%", "decide"]
    assert "was due and nothing was called" in ran.lines[2]
    assert rows["a"][:4] == ["undecided", "-", "0%", "-"]
    assert rows["n"][:4] == ["n/a", "-", "-", "-"]
    assert rows["stdin:5"][0] == "error"
    assert "4 traces scored with four_step@2: 1 pass, 1 fail, 1 undecided, 1 not_applicable" in ran.out
    assert "mean score 0.50" in ran.out
    assert "not scored: 1 record" in ran.out


def test_a_long_table_keeps_its_columns(run: Run) -> None:
    records = [PASS | {"id": f"trace-{n}"} for n in range(150)]
    ran = run("score", "-", stdin=lines(*records, FAIL | {"id": "x" * 200}))
    starts = {line.index("pass") for line in ran.lines[1:151]}
    assert len(starts) == 1
    assert ran.lines[151].startswith("xxxx")
    assert "…" in ran.lines[151]


def test_nothing_in_a_trace_reaches_the_terminal_raw(run: Run) -> None:
    evil = "\x1b]0;x\x07\x1b[2J\u202e[bold red]\nfake"
    record = FAIL | {"id": evil, "expected": {"calls": [{"tool": evil}]}}
    ran = run("score", "-", stdin=lines(record, record, {evil: 1}))
    assert not any((ord(c) < 32 and c != "\n") or c == "\u202e" for c in ran.out + ran.err)
    assert "[bold red]" in ran.out


def suite(raw: bytes) -> ET.Element:
    found = ET.fromstring(raw).find("testsuite")  # noqa: S314 (our own document)
    assert found is not None
    return found


def test_junit_has_a_case_for_each_trace_and_a_failure_for_each_failing_criterion(run: Run) -> None:
    many = {case.request["trace"]["id"]: case.request for case in CASES}  # type: ignore[call-overload,index]
    ran = run("score", "-", "--format", "junit", stdin=lines(*many.values(), b"{", UNDECIDED, NOTHING))
    found = suite(ran.raw)
    reports = {name: service.score(request) for name, request in many.items()}  # type: ignore[arg-type]
    for name, report in reports.items():
        (case,) = [case for case in found if case.get("name") == name]
        wanted = report.failing if report.verdict == "fail" else ()
        assert sorted(f.get("type") or "" for f in case.findall("failure")) == sorted(wanted)
        assert all(f.get("message") for f in case.findall("failure"))
    fails = sum(report.verdict == "fail" for report in reports.values())
    assert {key: found.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": str(len(many) + 3),
        "failures": str(fails),
        "errors": "1",
        "skipped": "3",
    }
    assert [case.get("name") for case in found if case.find("error") is not None] == [f"stdin:{len(many) + 1}"]
    assert len(found) == len(many) + 3


def test_junit_skips_what_is_undecided(run: Run) -> None:
    found = suite(run("score", "-", "--format", "junit", stdin=lines(UNDECIDED)).raw)
    assert (found.get("failures"), found.get("skipped")) == ("0", "1")
    [told] = [part.get("message") or "" for case in found for part in case if part.tag in ("skipped", "failure")]
    assert told.startswith("undecided (0% checked); call_decision, ")
    assert told.endswith(": need a judge")


def test_a_score_too_low_without_a_failing_criterion_is_told_as_such(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "id: r\nthresholds: {fail: 0.99, warn: 1}\ncriteria: [{id: answer, stage: integrate, check: {kind: answer}}]\n"
    )
    near = {"kind": "similar", "value": "Hello you", "threshold": 0.5}
    record = PASS | {"expected": {"answer": near}}
    ran = run("score", "-", "-r", "r.yaml", "--format", "junit", stdin=lines(record))
    assert [f.get("type") for f in suite(ran.raw).iter("failure")] == ["score"], ran


@given(st.text())
def test_any_text_can_stand_in_xml(text: str) -> None:
    read = ET.fromstring(f"<a>{escape(escape_forbidden(text))}</a>")  # noqa: S314 (our own document)
    if text.isprintable():
        assert (read.text or "") == text


def test_failed_shows_what_does_not_pass_and_counts_all(run: Run) -> None:
    ran = run("score", "-", "--failed", stdin=lines(PASS, FAIL, UNDECIDED, b"[]"))
    assert [line.split()[0] for line in ran.lines[1:4]] == ["f", "a", "stdin:4"]
    assert "3 traces scored with four_step@2: 1 pass, 1 fail, 1 undecided" in ran.out


def test_verbose_shows_the_stages_and_calls_of_every_trace(run: Run) -> None:
    ran = run("score", "-", "-v", stdin=lines(PASS, FAIL, CALLS))
    assert ran.out.count("what was found") == ran.out.count("=> ") == 3
    calls = [" ".join(line.split()) for line in ran.out.splitlines()]
    start = calls.index('step 1 greet(name="Ann", loud=true)')
    assert calls[start + 1 : start + 4] == [
        "result hello",
        "verdict fail 0.00",
        "over_call: greet was called where no call was due",
    ]
    again = calls.index("step 2 greet([1])")
    assert calls[again + 1 : again + 3] == ["error full", "verdict fail 0.00"]
    assert calls[calls.index("step 3 greet()") + 1] == "result not in the trace"


def test_a_finding_has_its_code_and_the_step_that_its_pointer_leads_into(run: Run) -> None:
    ran = run("score", "-", "--format", "junit", stdin=lines(CALLS))
    words = "over_call: greet was called where no call was due (step 1, greet: /steps/0/call)"
    assert ET.fromstring(ran.out).findall(".//failure")[0].get("message") == words  # noqa: S314 (our own document)
    assert "over_call: greet was called" in run("score", "-", stdin=lines(CALLS, PASS)).out


def test_an_error_is_told_once(run: Run) -> None:
    ran = run("score", "-", stdin=lines(PASS, b"{"))
    assert (ran.out + ran.err).count("stdin:2: ") == 1
    assert "not scored; see standard error" in ran.lines[2]


def test_verdicts_that_differ_between_trials_are_named(run: Run) -> None:
    trials = [{**one, "id": "door", "tags": {"trial": str(n)}} for n, one in enumerate((PASS, FAIL, PASS))]
    ran = run("score", "-", stdin=lines(*trials, *[{**one, "id": "window"} for one in trials[::2]]))
    assert "2 cases in several trials: 1 always the same, 1 flaky" in ran.out
    assert "flaky: door: 2 pass, 1 fail" in ran.out


def test_github_gets_annotations_a_summary_and_the_reports(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "in.jsonl").write_bytes(lines(PASS, FAIL | {"id": "a|b\n::error::c"}, UNDECIDED, b"{"))
    ran = run("score", "in.jsonl", "--format", "github", "-o", "reports.ndjson")
    assert ran.code == 5
    starts = [line.split("::")[1] for line in ran.lines]
    assert starts[0].startswith("error file=in.jsonl,line=2,title=a|b\\n%3A%3Aerror%3A%3Ac%3A failed at decide")
    assert starts[1].startswith("warning file=in.jsonl,line=3,title=a%3A undecided")
    assert starts[2].startswith("error file=in.jsonl,line=4,title=not scored")
    assert len(ran.lines) == 3
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "a\\|b" in summary
    assert "1 pass, 1 fail, 1 undecided" in summary
    assert len((tmp_path / "reports.ndjson").read_bytes().splitlines()) == 4


def test_junit_says_where_a_trace_stands_and_how_long_it_took(run: Run) -> None:
    (case,) = suite(run("score", "-", "--format", "junit", stdin=lines(PASS)).raw)
    assert (case.get("file"), case.get("line")) == ("stdin", "1")
    assert float(case.get("time") or "x") >= 0
