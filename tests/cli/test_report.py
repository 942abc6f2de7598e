"""`callgrade report`: reports as one page that can be handed on."""

from __future__ import annotations

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
    assert "wrong_argument schedule_transfer 1 wrong-argument" in text
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


def test_what_fits_no_trace_is_told(run: Run, scored: Path) -> None:
    (scored / "one.jsonl").write_text((scored / "cases.jsonl").read_text().splitlines()[0])
    ran = run("report", "reports.ndjson", "--html", "out.html", "--traces", "one.jsonl")
    assert "10 reports match no trace in --traces and will be shown without one" in ran.err
    assert ran.code == 0
    (scored / "report.ndjson").write_text((scored / "reports.ndjson").read_text().splitlines()[1])
    ran = run("report", "report.ndjson", "--html", "out.html", "--traces", "one.jsonl")
    assert "1 report matches no trace in --traces and will be shown without one" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["reports.ndjson"], 4, "--html"),
        (["reports.ndjson", "--html", "nowhere/out.html"], 4, "nowhere/out.html: No such file or directory"),
        (["cases.jsonl", "--html", "out.html"], 5, "no report could be read"),
        (["none.ndjson", "--html", "out.html"], 5, "none.ndjson"),
    ],
)
def test_what_cannot_be_done_is_told(run: Run, scored: Path, arguments: list[str], code: int, told: str) -> None:
    ran = run("report", *arguments)
    assert ran.code == code
    assert told in ran.err
