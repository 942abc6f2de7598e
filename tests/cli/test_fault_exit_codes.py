"""Exit codes, every fault of a provider under every command that asks a judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bulk import WHOLE
from tests.cli.cli_run import Run
from tests.faults.provider import FAULTS, Provider, serving

NOBODY = "401 404"
"""Nobody is there to be asked: 4."""
ANSWERED = (
    "echo-injected no-usage logprobs long-model negative-usage absurd-usage "
    "thinks thinks-unopened thinks-beside thinks-only cached-usage overcached-usage"
)
"""A verdict in spite of all."""
ENDLESS = "hang drip drip-head"
"""Nothing comes, or nothing whole."""

TRACE = {
    "id": "t",
    "events": [
        {"user": "What does order 7 cost?"},
        {"call": {"name": "price", "arguments": {"order": 7}}, "result": {"usd": 54}},
        {"assistant": "It costs $54."},
    ],
    "expected": {"calls": [{"tool": "price", "args": {"order": 7}}]},
}
LABELLED = {
    "id": "i",
    "criterion": "result_groundedness",
    "group": "g",
    "payload": {"usd": 54},
    "answer": "It costs $54.",
    "labels": [{"annotator": "ana", "label": "pass"}],
}

COMMANDS = {
    "score": ("score", "trace.json"),
    "allowed": ("score", "trace.json", "--allow-undecided"),
    "under": ("score", "trace.json", "--fail-under", "0.5"),
    "judge": ("calibrate", "judge", "--labels", "labels.jsonl", "--out", "said.jsonl"),
}
CODES = {
    "nobody": {"score": 4, "allowed": 4, "under": 4, "judge": 4},
    "silent": {"score": 3, "allowed": 3, "under": 3, "judge": 5},
    "answered": {"score": 0, "allowed": 0, "under": 0, "judge": 0},
}


@pytest.fixture(scope="module")
def faulty() -> Iterator[Provider]:
    with serving(Provider()) as server:
        yield server


@pytest.fixture(autouse=True)
def _set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(TRACE), "utf-8")
    (tmp_path / "labels.jsonl").write_text(json.dumps(LABELLED) + "\n", "utf-8")
    monkeypatch.setenv("CALLGRADE_JUDGE_API_KEY", "none")
    monkeypatch.setenv("CALLGRADE_JUDGE_ATTEMPTS", "1")


def expected_of(fault: str) -> str:
    return "nobody" if fault in NOBODY.split() else "answered" if fault in ANSWERED.split() else "silent"


FIRST = {expected_of(fault): fault for fault in reversed(FAULTS)}.values()
"""One fault of each kind: with it options are tried that look at the report alone."""


@pytest.mark.whole
@pytest.mark.parametrize("fault", FAULTS)
def test_each_command_says_what_came_of_the_judge(
    run: Run, faulty: Provider, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", f"openai/fault-{fault}")
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", faulty.base())
    if fault in ENDLESS.split():
        monkeypatch.setenv("CALLGRADE_JUDGE_DEADLINE", "1")
    codes = CODES[expected_of(fault)]
    ran = {name: run(*COMMANDS[name]) for name in (codes if WHOLE or fault in FIRST else ("score", "judge"))}
    assert {name: int(one.code) for name, one in ran.items()} == {name: codes[name] for name in ran}, ran


def test_an_address_at_which_nobody_is_ends_so_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where so many failed that the rest is not even sent."""
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/some-judge")
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", "http://127.0.0.1:1/v1")
    Path("many.jsonl").write_text("".join(json.dumps(TRACE | {"id": f"t{n}"}) + "\n" for n in range(30)), "utf-8")
    ran = run("score", "many.jsonl")
    assert ran.code == 4, ran
    assert "the judge openai/some-judge answered no question: no server responds at its address" in " ".join(
        ran.err.split()
    )
    ran = run(*COMMANDS["judge"])
    assert (ran.code, "error: CALLGRADE_JUDGE_MODEL: the judge" in ran.err) == (4, True)


def test_verbose_shows_what_the_judge_said(run: Run, faulty: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/some-judge")
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", faulty.base())
    said = " ".join(run(*COMMANDS["score"], "-v").out.split())
    assert "judged verdict what the judge said" in said
    assert "result_groundedness pass grounded by some-judge, uncalibrated: " in said


def test_what_no_judge_can_be_asked_about_is_told_once(
    run: Run, faulty: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/some-judge")
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", faulty.base())
    bare = {name: LABELLED[name] for name in ("criterion", "labels")}
    lines = [json.dumps(bare | {"id": f"i{n}", "group": f"i{n}"}) + "\n" for n in range(9)]
    Path("labels.jsonl").write_text("".join(lines), "utf-8")
    ran = run(*COMMANDS["judge"])
    assert (ran.code, ran.err.count("not judged:")) == (5, 1)
    assert "and 4 more: " in ran.err
    assert "9 items with neither trace nor answer" in ran.err
