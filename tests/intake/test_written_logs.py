"""Logs that were written without knowledge of the readers: how many are read right, by set and half."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service import score
from service.errors import InputError
from service.intake.unread_parts.suspects import Known
from service.intake.unread_parts.text_calls import find_text_calls
from tests.benchmarks.intake import list_outcomes

RIGHT = {
    "look-alikes left alone": (40, 39),
    "calls in texts found": (44, 41),
    "harmless records left alone": (40, 38),
    "lost calls named": (21, 19),
    "lost losss named": (12, 7),
    "lost replys named": (14, 12),
    "lost results named": (11, 9),
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


FORMS = [
    ('✿FUNCTION✿: rm\n✿ARGS✿: {"b": 2}', {"b": 2}),
    ("print(default_api.rm(b=2))", {"b": 2}),
    ("```tool_code\nr = default_api.rm(b=2)\nprint(r)\n```", {"b": 2}),
    ("<tool>rm</tool><tool_input>2</tool_input>", None),
    ('[TOOL_REQUEST]{"name": "rm", "arguments": {"b": 2}}[END_TOOL_REQUEST]', {"b": 2}),
    ("call:rm{b:2}", {"b": 2}),
    ("call:rm{b:<escape>x<escape>}", {"b": "x"}),
    ('<TOOLCALL>[{"name": "rm", "arguments": {"b": 2}}]</TOOLCALL>', {"b": 2}),
    ("[TextBlock(text='ok'), ToolUseBlock(id='c', input={'b': 2}, name='rm', type='tool_use')]", None),
    ("ChatCompletionMessage(tool_calls=[ToolCall(function=Function(arguments='{}', name='rm'))])", None),
]
"""Forms of calls in a text, with the arguments as far as they are read."""


@pytest.mark.parametrize(("text", "arguments"), FORMS)
def test_a_call_in_a_text_is_found_in_its_form(text: str, arguments: object) -> None:
    [call] = find_text_calls(text, Known({"rm": frozenset({"b"})}, listed=True))
    assert (call.name, call.arguments) == ("rm", arguments)


@pytest.mark.parametrize(
    "text",
    [
        "Use `default_api.rm(b=2)` here.",
        "You may call: rm {not} now.",
        "The <tool>rm {x}",
        "A FunctionCall (rm: 2) is made.",
        "It is a call:rm, or so.",
    ],
)
def test_prose_that_has_a_word_of_a_form_is_no_call(text: str) -> None:
    assert not find_text_calls(text, Known({"rm": frozenset({"b"})}, listed=True))


WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
WRITTEN = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
OPEN_CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"'
MADE = {"calls": [{"tool": "get_weather", "args": {"city": "Oslo"}}]}
NONE = {"calls": "none"}


def verdict(
    reply: dict[str, object], expected: dict[str, object], text_calls: str = "open"
) -> tuple[str | None, set[str]]:
    trace = {
        "tools": [WEATHER],
        "messages": [{"role": "user", "content": "Rain in Oslo?"}, {"role": "assistant"} | reply],
    }
    rubric = {"extends": "four_step", "id": "own", "text_calls": text_calls}
    report = score({"trace": trace, "judges": "off", "rubric": rubric, "expected": expected})
    return report.verdict, {found.code for found in report.findings()}


@pytest.mark.parametrize(
    ("text_calls", "written", "expected", "wanted"),
    [
        ("open", WRITTEN, MADE, "undecided"),
        ("open", WRITTEN, NONE, "undecided"),
        ("read", WRITTEN, MADE, "pass"),
        ("read", WRITTEN, NONE, "fail"),
        ("read", WRITTEN.replace("Oslo", "Bergen"), MADE, "fail"),
        ("read", OPEN_CALL, MADE, "undecided"),
        ("fail", WRITTEN, MADE, "fail"),
        ("fail", OPEN_CALL, MADE, "fail"),
        ("fail", "It rains.", NONE, "pass"),
    ],
)
def test_a_rubric_says_what_a_call_in_a_text_is(
    text_calls: str, written: str, expected: dict[str, object], wanted: str
) -> None:
    found, codes = verdict({"content": written}, expected, text_calls)
    assert found == wanted
    read = text_calls == "read" and written != OPEN_CALL
    assert ("call_in_text" in codes) == (written != "It rains." and not read)


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ({"content": "It rains.", "reasoning_content": WRITTEN}, "undecided"),
        ({"content": f"<think>{WRITTEN}</think>It rains."}, "undecided"),
        ({"content": [{"type": "thinking", "thinking": WRITTEN}, {"type": "text", "text": "It rains."}]}, "undecided"),
        ({"content": "It rains.", "reasoning_content": "I could call get_weather(city='Oslo')."}, "pass"),
    ],
)
def test_a_call_in_a_thought_is_open(reply: dict[str, object], wanted: str) -> None:
    assert verdict(reply, NONE)[0] == wanted


@pytest.mark.parametrize(
    "wrap", [dict, lambda trace: {"request": trace, "response": {"choices": [{"message": REPLY}]}}]
)
def test_a_text_calls_what_the_request_puts_on_offer(wrap: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Rain in Oslo?"}]
    trace = wrap({"messages": messages if wrap is not dict else [*messages, REPLY]})
    rubric = {"extends": "four_step", "id": "own", "text_calls": "read"}
    report = score({"trace": trace, "tools": [WEATHER], "judges": "off", "rubric": rubric, "expected": MADE})
    assert (report.verdict, [step.tool for step in report.steps]) == ("pass", ["get_weather"])


REPLY = {"role": "assistant", "content": WRITTEN}
