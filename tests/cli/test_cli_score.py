"""`callgrade score`: the forms of its output. tests/data/cli has more runs of it."""

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
from tests.cli.cli_run import Run

CASES = list_demo_cases()

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


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])
def test_library_http_and_command_line_give_the_same_bytes(
    case: DemoCase, run: Run, post: Callable[[bytes], bytes]
) -> None:
    body = json.dumps(case.request).encode()
    library = service.report_json(service.score(case.request))
    assert post(body) == library
    for form in ("json", "ndjson"):
        assert run("score", "-", "--format", form, stdin=body).raw == library + b"\n"


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


def test_many_bad_records_are_all_written_and_twenty_are_listed(run: Run) -> None:
    ran = run("score", "-", "--format", "ndjson", stdin=b"{x}\n" * 50)
    assert [json.loads(line)["error"]["line"] for line in ran.lines] == list(range(1, 51))
    assert (ran.err.count("error: stdin:"), "... and 30 more records" in ran.err) == (20, True)


def test_the_name_of_a_line_is_no_part_of_its_report(run: Run) -> None:
    named, plain = (run("score", "-", "-f", "json", stdin=lines(one)) for one in (PASS | {"custom_id": "first"}, PASS))
    assert named.raw == plain.raw


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "junit"])
def test_output_goes_to_the_file_and_is_the_same(run: Run, tmp_path: Path, form: str) -> None:
    def without_times(raw: bytes) -> bytes:
        return re.sub(rb' time="[^"]*"', b"", raw)

    shown = run("score", "-", "--format", form, stdin=lines(PASS, FAIL))
    written = run("score", "-", "--format", form, "--output", "out", stdin=lines(PASS, FAIL))
    assert (written.raw, "2 traces scored" in written.err) == (b"", True)
    assert without_times((tmp_path / "out").read_bytes()) == without_times(shown.raw)
    assert shown.code == written.code == 2


def test_a_long_table_keeps_its_columns(run: Run) -> None:
    records = [PASS | {"id": f"trace-{n}"} for n in range(150)]
    ran = run("score", "-", stdin=lines(*records, FAIL | {"id": "x" * 200}))
    assert len({line.index("pass") for line in ran.lines[1:151]}) == 1
    assert re.match("xxxx+…", ran.lines[151])


def test_nothing_in_a_trace_reaches_the_terminal_raw(run: Run) -> None:
    evil = "\x1b]0;x\x07\x1b[2J\u202e[bold red]\nfake"
    record = FAIL | {"id": evil, "expected": {"calls": [{"tool": evil}]}}
    ran = run("score", "-", stdin=lines(record, record, {evil: 1}))
    assert not any((ord(c) < 32 and c != "\n") or c == "\u202e" for c in ran.out + ran.err)
    assert "[bold red]" in ran.out


def test_verbose_shows_the_stages_and_calls_of_every_trace(run: Run) -> None:
    ran = run("score", "-", "-v", stdin=lines(PASS, FAIL, CALLS))
    assert ran.out.count("what was found") == ran.out.count("=> ") == 3
    calls = [" ".join(line.split()) for line in ran.out.splitlines()]
    start = calls.index('step 1 greet(name="Ann", loud=true)')
    assert calls[start + 1 : start + 4] == [
        "result hello",
        "verdict fail",
        "over_call: greet was called where no call was due",
    ]
    again = calls.index("step 2 greet([1])")
    assert calls[again + 1 : again + 3] == ["error full", "verdict fail"]
    assert calls[calls.index("step 3 greet()") + 1] == "result not in the trace"


def test_junit_has_a_case_for_each_trace_and_a_failure_for_each_failing_criterion(run: Run) -> None:
    many = {case.request["trace"]["id"]: case.request for case in CASES}  # type: ignore[call-overload,index]
    ran = run("score", "-", "--format", "junit", stdin=lines(*many.values(), b"{", UNDECIDED, {"events": []}, CALLS))
    found = ET.fromstring(ran.raw).find("testsuite")  # noqa: S314 (our own document)
    assert found is not None
    reports = {name: service.score(request) for name, request in many.items()}  # type: ignore[arg-type]
    for name, report in reports.items():
        (case,) = [case for case in found if case.get("name") == name]
        wanted = report.failing if report.verdict == "fail" else ()
        assert sorted(f.get("type") or "" for f in case.findall("failure")) == sorted(wanted)
        assert all(f.get("message") for f in case.findall("failure"))
    fails = 1 + sum(report.verdict == "fail" for report in reports.values())
    counts = {"tests": len(many) + 4, "failures": fails, "errors": 1, "skipped": 3}
    assert {key: int(found.get(key) or -1) for key in counts} == counts
    assert [case.get("name") for case in found if case.find("error") is not None] == [f"stdin:{len(many) + 1}"]
    words = "over_call: greet was called where no call was due (step 1, greet: /steps/0/call)"
    assert found[-1].findall("failure")[0].get("message") == words
    assert float(found[-1].get("time") or "x") >= 0


@given(st.text())
def test_any_text_can_stand_in_xml(text: str) -> None:
    read = ET.fromstring(f"<a>{escape(escape_forbidden(text))}</a>")  # noqa: S314 (our own document)
    if text.isprintable():
        assert (read.text or "") == text


def test_github_gets_annotations_a_summary_and_the_reports(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "in.jsonl").write_bytes(lines(PASS, FAIL | {"id": "a|b\n::error::c"}, UNDECIDED, b"{"))
    ran = run("score", "in.jsonl", "--format", "github", "-o", "reports.ndjson")
    assert ran.code == 5
    fail, undecided, bad = (line.split("::")[1] for line in ran.lines)
    assert fail.startswith("error file=in.jsonl,line=2,title=a|b\\n%3A%3Aerror%3A%3Ac%3A failed at decide")
    assert undecided.startswith("warning file=in.jsonl,line=3,title=a%3A undecided")
    assert bad.startswith("error file=in.jsonl,line=4,title=not scored")
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert [text for text in ("a\\|b", "1 pass, 1 fail, 1 undecided") if text not in summary] == []
    assert len((tmp_path / "reports.ndjson").read_bytes().splitlines()) == 4
    ran = run("score", "in.jsonl", "--format", "github", "--allow-undecided")
    assert [line.split(" ")[0] for line in ran.lines] == ["::error", "::notice", "::error"]
