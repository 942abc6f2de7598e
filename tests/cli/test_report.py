"""`callgrade report`: reports as one page that can be handed on."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.cli_run import Run
from tests.web.site import strip_tags


@pytest.fixture
def scored(run: Run, tmp_path: Path) -> Path:
    """The reports of the bundled cases, beside the cases."""
    run("demo", "--save", "cases.jsonl")
    run("score", "cases.jsonl", "-f", "ndjson", "-o", "reports.ndjson")
    return tmp_path


def read_page(folder: Path) -> str:
    return (folder / "out.html").read_text("utf-8")


def test_a_page_from_reports_alone(run: Run, scored: Path) -> None:
    ran = run("report", "reports.ndjson", "--html", "out.html", "--title", "Last <night>")
    page = read_page(scored)
    text = strip_tags(page)
    assert (ran.code, ran.err) == (0, "11 traces written to out.html\n")
    assert "<title>Last &lt;night&gt; · callgrade</title>" in page
    assert "8 ✗ fail" in text
    assert re.search(r"wrong_argument .{0,200} schedule_transfer 1 wrong-argument", text)
    assert "11 show only the report" in text
    assert "11 cases" in text
    assert "Today is Monday" not in text


def test_traces_add_the_conversations(run: Run, scored: Path) -> None:
    run("report", "reports.ndjson", "--html", "out.html", "--traces", "cases.jsonl")
    text = strip_tags(read_page(scored))
    assert "Today is Monday 2 March 2026. Send" in text  # what follows is marked as the source of an argument
    assert "next Friday" in text
    assert "show only the report" not in text


def test_the_page_holds_all_that_it_needs_and_allows_nothing_else(run: Run, scored: Path) -> None:
    run("report", "reports.ndjson", "--html", "out.html")
    page = read_page(scored)
    policy = re.search(r'content-security-policy" content="([^"]*)"', page)
    assert policy is not None
    parts = [re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL) for name in ("style", "script")]
    digests = [b64encode(sha256(one.encode()).digest()).decode() for (one,) in parts]
    assert policy[1].startswith(
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; img-src data:;"
    )
    assert not re.search(r"(src|href)=\"?(?!#)[^\"#]", page)
    assert not re.search(r"url\(|@import", page)


def test_traces_without_an_id_are_told_by_their_place(run: Run, scored: Path) -> None:
    lines = (scored / "cases.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    for case in cases:
        del case["trace"]["id"]
    (scored / "nameless.jsonl").write_text("\n".join(["{}", *map(json.dumps, cases)]))
    run("score", "nameless.jsonl", "-f", "ndjson", "-o", "nameless.ndjson")
    ran = run("report", "nameless.ndjson", "--html", "out.html", "--traces", "nameless.jsonl")
    assert ran.code == 5  # one line holds no report
    page = read_page(scored)
    entry = page[page.index('id="trace-6"') : page.index('id="trace-7"')]
    assert "Today is Monday 2 March 2026" in entry
    assert "fit no trace" not in ran.err


def test_what_fits_no_trace_is_told(run: Run, scored: Path) -> None:
    (scored / "one.jsonl").write_text((scored / "cases.jsonl").read_text().splitlines()[0])
    ran = run("report", "reports.ndjson", "--html", "out.html", "--traces", "one.jsonl")
    assert "10 reports match no trace in --traces and will be shown without one" in ran.err
    assert ran.code == 0
    (scored / "report.ndjson").write_text((scored / "reports.ndjson").read_text().splitlines()[1])
    ran = run("report", "report.ndjson", "--html", "out.html", "--traces", "one.jsonl")
    assert "1 report matches no trace in --traces and will be shown without one" in ran.err


def test_lines_of_a_batch_have_their_names(run: Run, scored: Path) -> None:
    reports = (scored / "reports.ndjson").read_text().splitlines()
    cases = (scored / "cases.jsonl").read_text().splitlines()
    lines = [
        json.dumps({"custom_id": f"line-{n}", "index": n, "report": json.loads(one)}) for n, one in enumerate(reports)
    ]
    sent = [json.dumps({"custom_id": f"line-{10 - n}", **json.loads(one)}) for n, one in enumerate(reversed(cases))]
    (scored / "results.jsonl").write_text("\n".join(lines))
    (scored / "sent.jsonl").write_text("\n".join(sent))
    assert run("report", "results.jsonl", "--html", "out.html", "--traces", "sent.jsonl").code == 0
    page = read_page(scored)
    entry = page[page.index('id="trace-6"') : page.index('id="trace-7"')]
    assert '<span class="name">line-5</span>' in entry
    assert "Today is Monday 2 March 2026" in entry


def test_those_that_failed_are_shown_first_where_not_all_are(run: Run, scored: Path) -> None:
    run("report", "reports.ndjson", "--html", "out.html", "--most", "8")
    page = read_page(scored)
    assert re.findall(r'<details class="run" id="trace-(\d+)">', page) == ["3", "4", "5", "6", "7", "8", "9", "10"]
    assert re.findall(r'<div class="run bare" id="trace-(\d+)">', page) == ["1", "2", "11"]


def test_a_page_that_cannot_be_written_is_a_usage_error(run: Run, scored: Path) -> None:
    ran = run("report", "reports.ndjson", "--html", "nowhere/out.html")
    assert (ran.code, "nowhere/out.html: No such file or directory" in ran.err) == (4, True)
