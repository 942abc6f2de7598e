"""`callgrade jobs` against a real service with its worker, and against a scripted one where things go wrong."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_run import Run
from tests.cli.served import Served, served
from tests.faults.provider import Provider
from tests.faults.scripted import Answer, scripted
from tests.jobs.process import request

PASS: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    "expected": {"calls": "none"},
    "judges": "off",
}
FAIL = PASS | {"expected": {"calls": "some"}}
BAD = PASS | {"messages": [{"role": "x"}]}
ID = "batch_019aa5b3c4d000112233445566778899"


def lines(*records: Any) -> bytes:
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in records)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("service"), Provider()) as running:
        yield running


def submitted(ask: Run, *records: Any, options: tuple[object, ...] = ()) -> str:
    """The id of a batch."""
    ran = ask("submit", "-", *options, stdin=lines(*records))
    assert (ran.code, bool(re.fullmatch(r"batch_[0-9a-f]{32}\n", ran.out))) == (0, True), ran
    return ran.out.strip()


def test_a_batch_from_its_submission_to_its_results(ask: Run, run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(lines(PASS | {"custom_id": "a"}, FAIL, request(1))))
    words = ("submit", "in.jsonl.gz", "--name", "nightly", "--tag", "suite=x", "--tag", "url=http://x")
    first = ask(*words)
    batch = first.out.strip()
    assert first.code == 0
    for told in ("guessed format: openai (2 traces)", "submitted 3 items", "the same command again returns this batch"):
        assert told in first.err
    watched = ask("watch", batch)
    assert (watched.code, watched.out, "completed; 3 items: 3 scored" in watched.err) == (0, "", True)
    results = ask("results", batch)
    found = [json.loads(line) for line in results.lines]
    assert [one["custom_id"] for one in found] == ["a", "item-1", "item-2"]
    assert [one["report"]["verdict"] for one in found] == ["pass", "fail", "pass"]
    assert found[0]["report"]["tags"] == {"suite": "x", "url": "http://x"}
    assert ask("results", batch, "--errors").raw == b""
    assert ask(*words).out.strip() == batch
    assert ask("submit", "in.jsonl.gz", "--name", "other").out.strip() != batch
    assert "3 of 3 done: 3 with a report, 0 without" in ask("show", batch).out
    assert json.loads(ask("show", batch, "--format", "json").out)["name"] == "nightly"
    assert batch in ask("list").out
    assert batch in [one["id"] for one in json.loads(ask("list", "--format", "json").out)["data"]]
    assert "3 cases" in run("summarize", "-", stdin=results.raw).out


def test_lines_that_cannot_be_taken_are_told_by_their_places(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines(PASS, BAD, {"custom_id": "x", "trace": {"format": "tau"}}, FAIL))
    refused = ask("submit", "in.jsonl")
    assert (refused.code, refused.out) == (5, "")
    wanted = "nothing was submitted: 2 of the items cannot be taken; --skip-invalid leaves them out"
    for told in ("error: in.jsonl:2: /messages/0/role", "error: in.jsonl:3: ", "/trace", wanted):
        assert told in refused.err
    taken = ask("submit", "in.jsonl", "--skip-invalid")
    assert (taken.code, "submitted 2 items" in taken.err) == (0, True)
    assert "left out: in.jsonl:2: /messages/0/role" in taken.err


def test_records_that_are_no_json_are_told_before_anything_is_sent(ask: Run) -> None:
    refused = ask("submit", "-", "--server", "http://127.0.0.1:9", stdin=lines(PASS, b"{x}", BAD))
    assert refused.code == 5
    assert "error: stdin:2: column 2: not JSON: key must be a string" in refused.err
    taken = ask("submit", "-", "--skip-invalid", stdin=lines(PASS, b"{x}", BAD))
    assert (taken.code, taken.err.count("left out: stdin:")) == (0, 2)
    assert "left out: stdin:3: /messages/0/role" in taken.err
    assert ask("submit", "-", "--skip-invalid", stdin=b"{x}\n").code == 5


def test_a_rubric_of_a_file_is_sent_along(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "extends: four_step\nid: mine\nwithout: [decide]\nthresholds: {fail: 0, warn: 0}\n"
    )
    batch = submitted(ask, FAIL, FAIL | {"rubric": "four_step"}, options=("--rubric", "mine.yaml"))
    assert ask("watch", batch).code == 0
    used = [json.loads(line)["report"]["rubric"]["id"] for line in ask("results", batch).lines]
    assert used == ["mine", "four_step"]
    unknown = ask("submit", "-", "--rubric", "nobodys", stdin=lines(PASS))
    assert (unknown.code, "/rubric: no rubric 'nobodys'" in unknown.err) == (5, True)


def test_a_running_batch_is_fetched_as_far_as_it_is_and_cancelled(ask: Run, service: Served, tmp_path: Path) -> None:
    service.provider.latency = 0.2
    batch = submitted(ask, *[request(1_000 + n) for n in range(400)])
    early = ask("results", batch, "--output", "out.ndjson")
    assert (early.code, "the batch has not ended" in early.err, ask("results", batch).code) == (2, True, 2)
    assert re.search("cancelling|finalizing", ask("cancel", batch).out)  # the latter where no item was begun
    watched = ask("watch", batch)
    assert (watched.code, "cancelled; 400 items: " in watched.err) == (2, True)
    assert ask("results", batch, "--output", "out.ndjson", "--wait").code == 0
    scored = (tmp_path / "out.ndjson").read_bytes()
    assert scored == ask("results", batch).raw
    assert [path.name for path in tmp_path.iterdir()] == ["out.ndjson"]
    errors = ask("results", batch, "--errors", "--wait").lines
    assert len(errors) + len(scored.splitlines()) == 400
    assert (ask("delete", batch).code, ask("show", batch).code) == (0, 4)


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["show", ID], 4, "no batch of that id"),
        (["show", ID, "--key", "cg_wrong"], 4, "--key: the key is unknown here, revoked or expired"),
        (["show", ID, "--server", "localhost:8000"], 4, "expected a URL such as"),
        (["show", ID, "--key", "k\u00e9y"], 4, "--key: expected a key as"),
        (["watch", ID, "--server", "http://127.0.0.1:1"], 4, "no answer from http://127.0.0.1:1"),
        (["results", ID, "--server", "http://127.0.0.1:1"], 4, "no answer from http://127.0.0.1:1"),
        (["list", "--status", "odd"], 5, "status: expected 'in_progress'"),
        (["list", "--after", "x"], 5, "after: expected the id of a batch"),
        (["submit", "none.jsonl"], 5, "none.jsonl: cannot be read"),
        (["submit", "-", "--tag", "x"], 4, "--tag: expected key=value"),
        (["submit", "-", "--rubric", "none.yaml"], 4, "--rubric: none.yaml: No such file"),
    ],
)
def test_what_goes_wrong_is_told(ask: Run, tmp_path: Path, args: list[str], code: int, told: str) -> None:
    ran = ask(*args, stdin=lines(PASS))
    assert (ran.code, told in ran.err) == (code, True), ran
    assert "tried again" not in ran.err
    assert list(tmp_path.iterdir()) == []


def batch(status: str, done: int = 0, **more: Any) -> bytes:
    """A batch of ten as the service gives it."""
    counts = {"total": 10, "completed": done, "failed": 0, "rejected": 0, "cancelled": 0, "expired": 0}
    names = "unpriced_calls uncertain_usd questions tokens_in tokens_out cache_hits cost_usd"
    nothing = dict.fromkeys(("budget_usd", "max_questions", "reason", "resume_at", "ended_at", "webhook"))
    times = {"created_at": "2026-11-21T10:00:00Z", "deadline_at": "2026-11-22T10:00:00Z"}
    said = {"id": ID, "name": "", "status": status, "request_counts": counts, "tags": {}, "rejected": []}
    return json.dumps(said | dict.fromkeys(names.split(), 0) | nothing | times | more).encode()


def test_a_watch_goes_on_where_its_connection_broke(run: Run) -> None:
    paused = batch("paused_provider", 2, reason="429 of the provider", resume_at="2026-11-21T10:00:30Z")
    looks = [batch("in_progress", 1), paused, b"", batch("in_progress", 5), batch("completed", 10)]
    with scripted(lambda _, before: Answer(looks[before], status=200 if looks[before] else 502)) as server:
        ran = run("jobs", "watch", ID, "--server", server.url)
    assert (ran.code, server.asked) == (0, [f"GET /v1/batches/{ID}"] * 5)
    told = ["paused: 429 of the provider; next try at 10:00:30 UTC", "resumed", "completed; 10 items: 10 scored"]
    places = [ran.err.index(text) for text in told]
    assert places == sorted(places)


FAILED_ITEM = {**json.loads(batch("x", 9))["request_counts"], "failed": 1}
DOWN = "unauthorized: openai/m: the provider does not accept the key (401)"
MODEL = "unknown_model: openai/m: the provider answered 404 Not Found"
GONE = "unreachable: openai/m: no connection"
BUSY = "provider_error: openai/m: the provider answered 503"

# what the service says first (then the batch completes), the exit code of a watch, what is said
ENDS: list[tuple[str, int, dict[str, Any], int, str]] = [
    ("completed", 3, {"reason": "it is so"}, 0, "it is so"),
    ("failed", 3, {"reason": "it is so"}, 2, "it is so"),
    ("cancelled", 3, {}, 2, "cancelled; 10 items: 3 scored"),
    ("expired", 3, {}, 2, "expired; 10 items: 3 scored"),
    ("completed", 9, {"request_counts": FAILED_ITEM}, 2, "10 items: 9 scored, 1 failed"),
    (
        "paused_budget",
        3,
        {"budget_usd": 1.0, "questions": 3, "max_questions": 7},
        2,
        f"jobs resume {ID} --budget-usd X",
    ),
    ("paused_budget", 3, {"questions": 7, "max_questions": 7}, 2, f"jobs resume {ID} --max-questions N"),
    ("paused_budget", 0, {"reason": "unauthorized"}, 2, "jobs resume"),
    ("paused_provider", 0, {"reason": DOWN}, 4, "the judge openai/m answers no question"),
    ("paused_provider", 7, {"reason": DOWN}, 4, "the judge openai/m answers no question"),
    ("paused_provider", 0, {"reason": MODEL}, 4, "the judge openai/m answers no question"),
    ("paused_provider", 0, {"reason": GONE}, 4, "the judge openai/m answers no question"),
    ("paused_provider", 7, {"reason": GONE}, 0, "completed"),
    ("paused_provider", 0, {"reason": BUSY}, 0, "completed"),
    ("paused_provider", 0, {}, 0, "completed"),
]


@pytest.mark.parametrize(("status", "done", "more", "code", "told"), ENDS)
def test_a_watch_ends_with_its_batch_or_where_it_cannot_go_on(
    run: Run, status: str, done: int, more: dict[str, Any], code: int, told: str
) -> None:
    def answer(request: str, before: int) -> Answer:
        if "/results" in request:
            return Answer(headers={"x-callgrade-next-offset": "0", "x-callgrade-complete": "true"})
        return Answer(batch(status, done, **more) if before == 0 else batch("completed", 10))

    with scripted(answer) as server:
        ran = run("jobs", "watch", ID, "--server", server.url)
    assert (ran.code, told in ran.err) == (code, True), ran.err
    if status == "paused_provider":
        with scripted(answer) as server:
            assert run("jobs", "results", ID, "--wait", "--server", server.url).code == code


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [(403, 4, "--key: no"), (409, 4, "no"), (429, 1, "no"), (503, 1, "no"), (422, 5, "no"), (0, 4, "http")],
)
def test_a_refusal_has_the_exit_code_of_its_kind(run: Run, status: int, code: int, told: str) -> None:
    """Status 0: another server, which is no callgrade."""
    problem = {"type": "about:blank", "title": "", "status": status, "detail": "no", "errors": []}
    answer = Answer(json.dumps(problem).encode(), status) if status else Answer(b"<html>hello</html>")
    with scripted(lambda *_: answer) as server:
        ran = run("jobs", "cancel", ID, "--server", server.url)
    assert (ran.code, f"error: {told}" in ran.err) == (code, True), ran.err
    assert ("the answer does not come from callgrade" in ran.err) is (status == 0)
