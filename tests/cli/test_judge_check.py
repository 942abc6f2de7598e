"""`callgrade judge check`: three questions, and what is said of a judge by what becomes of them."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from tests.cli.cli_run import Run
from tests.faults.provider import Asked, Provider


def answer_rightly(asked: Asked) -> Mapping[str, Any]:
    """The stand-in is right about all but the choice of a tool."""
    return {"label": "wrong"} if "acceptable" in json.dumps(asked.schema) else {}


# what the model does, whether it is right, exit code, what is said
CASES = [
    ("fault-no-usage", True, 0, ["replies  3 of 3, 3 at the first try", "answers  3 of 3", "- Nothing to change."]),
    ("good", True, 0, ["traces   3,300 questions", "one after the other, free", "- The server reports 100 tokens for a"]),
    ("fault-no-usage", False, 2, ["answers  2 of 3", "- Wrong on a plain question: tool_selection."]),
    ("fault-not-json", True, 2, ["replies  0 of 3", "- 3 of 3 replies cannot be used: the reply is no JSON"]),
    ("fault-off-menu-x1", True, 0, ["1. tool_selection         right", "2 requests", "3 of 3, 2 at the first try"]),
    ("fault-404", True, 4, ["unknown_model", "- Set another CALLGRADE_JUDGE_MODEL"]),
    ("fault-401", True, 4, ["unauthorized", "- Set CALLGRADE_JUDGE_API_KEY"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{row[0]}-{row[1]}" for row in CASES])
def test_a_judge_is_checked(
    run: Run, provider: Provider, monkeypatch: pytest.MonkeyPatch, case: tuple[str, bool, int, list[str]]
) -> None:
    model, right, code, said = case
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", f"openai/{model}")
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", provider.base())
    monkeypatch.setenv("COLUMNS", "80")
    provider.reply_of = answer_rightly if right else None
    ran = run("judge", "check")
    assert [text for text in said if text not in ran.out] == [], ran.out
    assert ran.code == code
    assert "reachable in " in ran.lines[1]
    assert [line for line in ran.lines if len(line) > 80] == []
    assert "$0.00" not in ran.out


def test_a_server_that_is_not_there_is_told_with_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens
        monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/m")
        monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        ran = run("judge", "check")
    assert ran.code == 4
    assert "cannot be reached: it accepts no connection. Start the server (ollama serve" in ran.err
