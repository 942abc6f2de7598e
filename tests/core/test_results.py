"""What tools return, as it comes: which structure it has, what that can prove, and which of it are errors."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import InputError, conclude, plan, score
from service.core.judging.focus import render_part
from service.core.results.failures.marking import find_failure
from service.core.results.structure import MAX_TEXT_CHARS, list_forms, read_text
from service.core.trace import ToolDef
from tests.replies import make_reply
from tests.tables import DATA, named, read_yaml

Json = Any
STRUCTURE, FALSE, FAILURES = (
    read_yaml(DATA / "results" / f"{name}.yaml") for name in ("structure", "false_answer", "failures")
)
EXACT = {"json", "json_in_text", "json_lines", "fenced_json", "quoted_json"}


@pytest.mark.parametrize("case", STRUCTURE["cases"], ids=lambda case: case["name"])
def test_the_structure_of_a_text(case: Json) -> None:
    found = read_text(case["text"]).passages
    assert [[one.form, one.start, one.end, one.value] for one in found] == case["found"]
    assert [one.exact for one in found] == [one.form in EXACT and not case.get("disowned") for one in found]
    assert (list_forms(case["text"])[-1] in ("text", "empty")) or found


def test_json_in_a_long_text_is_disowned() -> None:
    text = 'The result is {"a": 1}. ' + "That is how it goes on. " * 10
    assert [one.exact for one in read_text(text[:24]).passages] == [True]
    assert [one.exact for one in read_text(text).passages] == [False]


PIECES = st.sampled_from(
    ['{"a": 1}', *'{}"\\[&| \n', "```", "```json", "a: 1", "b: x", "|---|", "a,b", "1,2", "<a>", "</a>"]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_passages_stand_apart_and_exact_ones_spell_their_value(text: str) -> None:
    found = read_text(text).passages
    places = [(one.start, one.end) for one in found]
    if not any(one.form == "quoted_json" for one in found):
        assert all(a < b for a, b in places)
        assert all(one[1] <= other[0] for one, other in pairwise(places))
        assert all(json.loads(text[one.start : one.end]) == one.value for one in found if one.exact)


WORDS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=9)
OBJECT = st.dictionaries(WORDS, st.integers(-(10**15), 10**15) | WORDS, min_size=1)


@given(OBJECT, st.integers(0, 5))
def test_json_is_found_in_any_wrapping(value: Json, wrapping: int) -> None:
    plain = json.dumps(value)
    text = [plain, f"It is {plain}.", f"```json\n{plain}\n```", json.dumps(plain), f"{plain}\n{plain}", f"a\n\n{plain}"]
    assert [one.value for one in read_text(text[wrapping]).passages][:1] == [value]


N = MAX_TEXT_CHARS
HOSTILE = {
    "braces": "{" * N,
    "members": '{"a":' * (N // 5),
    "strings": '{"' * (N // 2),
    "backslashes": '{"' + "\\" * N,
    "arrays": '[{"' * (N // 3),
    "brackets": "[" * N,
    "no colons": ('{"a" ' * 10 + "}" * 10) * 4_000,
    "spaces": ("{" + " " * 50) * (N // 51),
    "fences": "```\n" * (N // 4),
    "nested fences": "```json\n```\n{" * (N // 13),
    "dashes": "|-|-|\n" * (N // 6),
    "quotation marks": '"' * N,
    "cells": '"' * 1_000 + ",\n" * 1_000,
    "elements": "<a>" * (N // 3),
    "keys": ("k" * 39 + " ") * (N // 40),
    "words": "a" * N,
    "entities": '<!DOCTYPE l [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><l>&b;</l>',
    "an outer file": '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/hosts">]><l>&a;</l>',
    "a parameter": '<?xml version="1.0"?><!DOCTYPE l SYSTEM "http://127.0.0.1/x"><l/>',
    "too deep": '{"a":' * 1_000 + "1" + "}" * 1_000,
    "too long": '{"a": 1}' + " " * N,
    "a surrogate": '{"a": "\ud800"}',
}
LARGE = {
    "objects": ('{"a":1} ', N // 8),
    "lines of objects": ('{"a":1}\n', N // 8),
    "pairs": ("a: 1\n", 1),
    "rows": ("a,b\n" + "1,2\n" * (N // 4 - 1), 1),
    "tables of other widths": ("|a|b|\n|-|-|\n|1|2|\n|a|b|c|\n|-|-|-|\n|1|2|3|\n", 2 * (N // 42)),
    "a table": ("|a|b|\n|-|-|\n" + "|1|2|\n" * (N // 6 - 2), 1),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_text(text: str) -> None:
    assert read_text(text).passages == ()
    assert find_failure(text) is None


@pytest.mark.parametrize(("text", "passages"), LARGE.values(), ids=LARGE)
def test_large_texts_are_read_whole(text: str, passages: int) -> None:
    whole = text * (N // len(text))
    found = read_text(whole).passages
    assert len(found) == passages
    assert found[-1].end >= len(whole) - 1


# One false answer to one result, in all spellings.

CALLED = {"calls": [{"tool": "get_balance"}]}


def ask(result: Json, answer: str = FALSE["answer"], **more: Json) -> Json:
    events = [
        {"user": "What is my balance?"},
        {"call": {"name": "get_balance"}, "result": result},
        {"assistant": answer},
    ]
    return {"trace": {"format": "callgrade", "events": events, **more}, "expected": CALLED}


def ask_openai(result: Json) -> Json:
    content = result if isinstance(result, str | list) else json.dumps(result)
    call = {"id": "1", "type": "function", "function": {"name": "get_balance", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "What is my balance?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": content},
        {"role": "assistant", "content": FALSE["answer"]},
    ]
    return {"trace": {"format": "openai", "messages": messages}, "expected": CALLED}


@pytest.mark.parametrize("asked", [ask, ask_openai], ids=["callgrade", "openai"])
@pytest.mark.parametrize(("result", "ends"), named(FALSE["spellings"]))
def test_a_false_answer_never_passes(result: Json, ends: str, asked: Json) -> None:
    report = score({**asked(result), "judges": "off"})
    codes = {finding.code for finding in report.findings()}
    assert score(asked(result)).verdict == "undecided"
    assert report.verdict == ("pass" if ends == "elsewhere" else "undecided")
    assert codes == ({"suspected_slip"} if ends == "slip" else {"unread_result"} if ends == "unread" else set())


@pytest.mark.parametrize("result", [row[1] for row in FALSE["spellings"] if row[2] != "unread"])
def test_the_true_answer_never_fails(result: Json) -> None:
    report = score({**ask(result, "Your balance is 120."), "judges": "off"})
    assert report.verdict == "pass"
    assert report.findings() == []


def test_the_report_says_in_which_form_a_result_was_read() -> None:
    [step] = score({**ask("balance: 120\ncurrency: EUR"), "judges": "off"}).steps
    assert step.result_forms == ("key_values",)
    events = [{"user": "Hi"}, {"call": {"name": "a"}}, {"call": {"name": "b"}, "result": 'It is {"c": 1}.'}]
    report = score({"trace": {"format": "callgrade", "events": events}})
    assert [step.result_forms for step in report.steps] == [(), ("json_in_text", "text")]


@pytest.mark.parametrize(("label", "value", "verdict"), [("grounded", 1.0, "pass"), ("contradicted", 0.0, "fail")])
def test_what_is_suspected_is_for_the_judge(label: str, value: float, verdict: str) -> None:
    made = plan(ask("balance: 120\ncurrency: EUR"))
    asked = next(one for one in made.asks if one.criterion == "result_groundedness")
    assert [finding.code for finding in asked.findings] == ["suspected_slip"]
    assert asked.veto is None
    assert "nowhere" in json.dumps(asked.evidence)
    best = {one.key: (make_reply(next(iter(one.judge.scale)), 1.0),) for one in made.asks}
    report = conclude(made, {**best, asked.key: (make_reply(label, value),)})
    assert report.verdict == verdict
    assert "suspected_slip" in {finding.code for finding in report.findings()}


# Errors.


@pytest.mark.parametrize(("result", "path"), FAILURES["certain"], ids=repr)
def test_a_certain_error(result: Json, path: str) -> None:
    found = find_failure(result)
    assert found is not None
    assert (found.certain, found.path) == (True, path.replace("/@", "@"))


LIKELY = [("", result, "likely") for result in FAILURES["likely"]]


@pytest.mark.parametrize(("tool", "result", "grade"), [*LIKELY, *FAILURES["by_tool"]], ids=repr)
def test_a_likely_error_and_an_error_of_a_tool(tool: str, result: Json, grade: str) -> None:
    found = find_failure(result, ToolDef(tool) if tool else None)
    assert found is not None
    assert found.certain == (grade == "certain")


@pytest.mark.parametrize("result", FAILURES["none"], ids=repr)
def test_no_error(result: Json) -> None:
    assert find_failure(result) is None


PROMISES = [
    ({"type": "object", "required": ["a"]}, True),
    ({"type": "object"}, True),
    ({"type": ["object", "null"]}, False),
    (None, False),
]


@pytest.mark.parametrize(("schema", "promised"), PROMISES)
def test_nothing_where_a_value_is_promised_is_a_likely_error(schema: Json, promised: bool) -> None:
    assert (find_failure(None, ToolDef("f", output_schema=schema)) is not None) == promised


REPORTED = [
    ({"error": "boom"}, "error_in_result /steps/0/result/content/error", {"is_error": True}),
    ("Error: boom", "likely_error /steps/0/result/content", {"suspected_error": "the result begins as an error does"}),
]


@pytest.mark.parametrize(("result", "note", "shown"), REPORTED)
def test_an_error_that_a_result_reports_is_noted_and_shown_to_judges(result: Json, note: str, shown: Json) -> None:
    made = plan(ask(result, "I could not find it."))
    assert [f"{one.code} {one.path}" for one in conclude(made).notes] == [note]
    [event] = render_part("results", made.trace, made.asks[0]._replace(turn=None))
    said = {"role": "result", "tool": "get_balance", "path": "/steps/0/result/content", "content": result}
    assert event == said | shown


@pytest.mark.parametrize(("label", "verdict", "value"), [("meets", "pass", 1.0), ("fails", "fail", 0.0)])
def test_what_a_text_says_of_an_error_is_for_the_judge(label: str, verdict: str, value: float) -> None:
    made = plan(ask({"error": "not found"}, "`INV-2045` is on its way."))
    [asked] = [one for one in made.asks if one.criterion == "recovery"]
    assert asked.value == {"tool": "get_balance", "error": {"error": "not found"}, "text": "`INV-2045` is on its way."}
    best = {one.key: (make_reply(next(iter(one.judge.scale)), 1.0),) for one in made.asks}
    report = conclude(made, {**best, asked.key: (make_reply(label, value),)})
    assert report.verdict == verdict
    assert "suspected_unresolved_error" in {finding.code for finding in report.findings()}


CLAIMED = [
    ("I have sent the mail.", "undecided", ["claimed_success_after_error"]),
    ("The mail could not be sent.", "pass", []),
    ("Is there anything else?", "pass", []),
]


@pytest.mark.parametrize(("answer", "verdict", "codes"), CLAIMED)
def test_completion_that_is_claimed_after_a_likely_error_is_suspected(
    answer: str, verdict: str, codes: list[str]
) -> None:
    report = score({**ask("Error: no such user", answer), "judges": "off"})
    assert report.verdict == verdict
    assert [finding.code for finding in report.findings()] == codes


def test_a_pattern_that_cannot_be_read_is_refused_where_it_stands() -> None:
    tools = [{"name": "get_balance", "annotations": {"errorPatterns": [{"prefix": "E1"}, {"equals": 1}]}}]
    with pytest.raises(InputError) as caught:
        score(ask("E1", tools=tools))
    assert [problem.path for problem in caught.value.problems] == ["/trace/tools/0/annotations/errorPatterns/1"]


@pytest.mark.parametrize("calls", [3, 20])  # so few are compared one by one; so many by kind
@pytest.mark.parametrize(
    "spell",
    [lambda value: value, json.dumps, lambda value: {"content": json.dumps(value)}],
    ids=["as it is", "text", "wrapped"],
)
def test_calls_are_told_apart_by_what_their_results_spell(calls: int, spell: Any) -> None:
    events = [{"call": {"name": "f", "arguments": {}}, "result": spell({"v": n})} for n in range(calls)]
    wanted = [{"tool": "f", "args": {}, "result": {"v": calls - 1 - n}} for n in range(calls)]
    trace = {"format": "callgrade", "events": events}
    assert score({"trace": trace, "expected": {"calls": wanted}, "judges": "off"}).verdict == "pass"
