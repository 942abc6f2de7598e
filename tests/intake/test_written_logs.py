"""Logs that were written without knowledge of the readers: how many are read right, by set and half."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from service import score
from service.errors import InputError
from tests.benchmarks.intake import list_outcomes

RIGHT = {
    "look-alikes left alone": (40, 39),
    "calls in texts found": (44, 41),
    "harmless records left alone": (40, 38),
    "lost calls named": (21, 19),
    "lost losss named": (12, 7),
    "lost replys named": (14, 12),
    "lost results named": (9, 6),
}
"""The rows read right at least: of the half that may be read, and of the half that is only counted."""


def test_as_many_are_read_right_as_before() -> None:
    counts = Counter((name, row["half"]) for name, row, right, _ in list_outcomes() if right)
    now = {name: (counts[name, "seen"], counts[name, "held_back"]) for name in RIGHT}
    assert all(is_right >= was for name in RIGHT for is_right, was in zip(now[name], RIGHT[name], strict=True)), now


@pytest.mark.parametrize("tool", ["send_email", "close_account", "get_weather"])
@pytest.mark.parametrize(
    "text",
    [
        '<function_calls><invoke name="{tool}"><parameter name="x">1</parameter></invoke></function_calls>',
        '<function={tool}>{{"x": 1}}</function>',
        '[TOOL_CALLS][{{"name": "{tool}", "arguments": {{"x": 1}}}}]',
    ],
)
def test_the_name_of_a_tool_closes_no_call(tool: str, text: str) -> None:
    tools = [{"name": tool, "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": text.format(tool=tool)}]
    report = score({"trace": {"tools": tools, "messages": messages}, "expected": {"calls": "none"}, "judges": "off"})
    assert report.verdict == "undecided"
    assert [part.kind for part in report.unread] == ["call"]


@pytest.mark.shared_data
def test_the_shared_rows(shared_data: Path) -> None:
    file = shared_data.parent / "cases" / "false_verdicts.jsonl"
    if not file.exists():
        pytest.skip(f"no cases at {file}")
    rows = [row for row in map(json.loads, file.read_text("utf-8").splitlines()) if row["allowed"]]
    assert rows
    for row in rows:
        try:
            verdict = score(row["request"]).verdict
        except InputError:
            verdict = "refused"
        allowed = {"undecided" if one == "abstain" else one for one in row["allowed"]}
        assert verdict in allowed | ({"refused"} if "refused" in row["right"] else set()), row["id"]
