"""`callgrade convert` and `callgrade formats`: what is read, and what can be."""

from __future__ import annotations

import json
from pathlib import Path

from service.intake.reading import FORMATS
from tests.cli.cli_run import Run

MESSAGES = [{"role": "user", "content": "Hi", "mood": "good"}, {"role": "assistant", "content": "Hello."}]


def test_a_log_is_printed_as_it_is_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(json.dumps(MESSAGES))
    ran = run("convert", str(file), "-v")
    assert json.loads(ran.out) == {"format": "callgrade", "events": [{"user": "Hi"}, {"assistant": "Hello."}]}
    assert f"{file}:1: ignored: /messages/0/mood: the member 'mood' of a message is not read" in ran.err
    assert "guessed format: openai (1 trace)" in ran.err
    file.write_text(json.dumps({"messages": MESSAGES, "message": MESSAGES[1], "done": True}))
    assert f"{file}:1: read as ollama; the second best guess is openai" in run("convert", str(file), "-v").err
    assert ran.code == 0


def test_what_cannot_be_read_is_told_and_exits_with_5(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text('[{"nothing": 1}]')
    ran = run("convert", str(file))
    assert (ran.code, ran.out) == (5, "")
    assert "cannot tell the format of this trace by its members (nothing)" in ran.err


def test_every_format_is_listed_with_what_tells_it(run: Run) -> None:
    told = run("formats").out
    assert [name for name in FORMATS if name not in told] == []


def test_traces_that_name_no_tools_are_given_those_of_a_file(run: Run, tmp_path: Path) -> None:
    log, tools, broken = tmp_path / "log.jsonl", tmp_path / "tools.json", tmp_path / "broken.json"
    log.write_text(json.dumps({"messages": MESSAGES}) + "\n" + json.dumps({"messages": MESSAGES, "tools": []}) + "\n")
    tools.write_text(json.dumps({"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}))
    broken.write_text('{"tools": [{"title": "greet"}]}')
    ran = run("convert", str(log), "--tools", str(tools))
    assert [[tool["name"] for tool in json.loads(line)["tools"]] for line in ran.out.splitlines()] == [["greet"], []]
    refused = run("score", str(log), "--tools", str(broken))
    assert (refused.code, f"{broken}: /tools/0: a tool needs a name" in refused.err) == (5, True)
