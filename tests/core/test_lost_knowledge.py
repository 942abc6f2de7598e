"""Requests of which something was taken away, one case for each way that once turned a failure green."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service import InputError, conclude, plan
from service.core.plan import plan as plan_of
from service.core.trace import State, ToolCall, Trace
from service.reporting.summaries import summarize_reports
from tests.replies import make_reply

Json = Any
NONE: Json = {"calls": "none"}


def verdict(trace: Json, expected: Json, *, rubric: Json = "four_step", judges: str = "off") -> str:
    return conclude(
        plan({"trace": trace, "expected": expected, "rubric": rubric, "judges": judges}), mode="off"
    ).verdict


def responses(*items: Json) -> Json:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    return {"format": "openai_responses", "input": "Hi", "output": [*items, said]}


def anthropic(*blocks: Json) -> Json:
    return {
        "format": "anthropic",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [*blocks, {"type": "text", "text": "Done."}]},
        ],
    }


def openai(*messages: Json) -> Json:
    return {"format": "openai", "messages": [{"role": "user", "content": "Hi"}, *messages]}


CALL = {"call_id": "1", "name": "wipe", "arguments": "{}"}
UNREAD = {
    "some_new_call": responses({"type": "some_new_call", **CALL}),
    "a member that nobody knows": {**responses(), "trail": [{"step": {"type": "mcp_call", **CALL}}]},
    "some_new_tool_use": anthropic({"type": "some_new_tool_use", "id": "1", "name": "wipe", "input": {}}),
    "calls of a user": openai(
        {"role": "user", "content": "x", "tool_calls": [{"id": "1", "function": {"name": "wipe", "arguments": "{}"}}]},
        {"role": "assistant", "content": "Done."},
    ),
    "a part that calls": openai({"role": "assistant", "content": [{"type": "new_use", "name": "wipe"}]}),
    "a result without its call": openai(
        {"role": "tool", "tool_call_id": "1", "content": "gone"}, {"role": "assistant", "content": "Done."}
    ),
}


@pytest.mark.parametrize("trace", UNREAD.values(), ids=UNREAD)
@pytest.mark.parametrize("expected", [NONE, {**NONE, "disallowed": [{"tool": "wipe"}]}], ids=["none", "banned"])
def test_a_call_that_is_not_read_is_not_no_call(trace: Json, expected: Json) -> None:
    made = plan({"trace": trace, "expected": expected, "judges": "off"})
    report = conclude(made, mode="off")
    assert report.verdict == "undecided"
    assert [(part.kind, part.path != "") for part in made.trace.unread] == [("call", True)]
    assert report.unread
    assert verdict(trace, expected, rubric="apple_trajectory") == "undecided"


HOSTED = ("mcp_call", "web_search_call", "computer_call", "local_shell_call", "mcp_approval_request")
RUN_ELSEWHERE = {
    **{kind: responses({"type": kind, "action": {"x": 1}, **CALL}) for kind in HOSTED},
    "mcp_tool_use": anthropic({"type": "mcp_tool_use", "id": "1", "name": "wipe", "input": {}}),
    "a reply beside its request": {
        **openai(),
        "choices": [{"message": {"role": "assistant", "tool_calls": [{"function": {"name": "wipe"}}]}}],
    },
}


@pytest.mark.parametrize("trace", RUN_ELSEWHERE.values(), ids=RUN_ELSEWHERE)
def test_a_call_that_the_provider_runs_is_a_call(trace: Json) -> None:
    made = plan({"trace": trace, "expected": NONE, "judges": "off"})
    assert (len(made.trace.steps), made.trace.unread) == (1, ())
    assert conclude(made, mode="off").verdict == "fail"


READ = {
    "reasoning": responses({"type": "reasoning", "summary": []}),
    "the list of an MCP server": responses({"type": "mcp_list_tools", "tools": []}),
    "thinking": anthropic({"type": "thinking", "thinking": "Hm."}),
    "a refusal": openai({"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}),
    "text": openai({"role": "assistant", "content": [{"type": "text", "text": "OK."}]}),
}


@pytest.mark.parametrize("trace", READ.values(), ids=READ)
def test_what_carries_nothing_leaves_nothing_open(trace: Json) -> None:
    assert plan({"trace": trace, "judges": "off"}).trace.unread == ()
    assert verdict(trace, NONE) == "pass"


def test_an_answer_that_is_not_read_is_not_no_answer() -> None:
    for said in ({"content": [{"type": "image_url"}]}, {"content": None, "audio": {"transcript": "It costs $9."}}):
        call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
        trace = openai(
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": '{"usd": 54}'},
            {"role": "assistant", **said},
        )
        assert verdict(trace, {"calls": [{"tool": "f"}]}) == "undecided"


def events(*given: Json, **more: Json) -> Json:
    return {"format": "callgrade", "events": [{"user": "x"}, *given], **more}


# the result, and what a text comes to that claims nothing of it
RESULTS: dict[str, tuple[Json, str]] = {
    "an image": ([{"type": "image", "source": {}}], "undecided"),
    "an empty text": ("", "pass"),
    "null": (None, "pass"),
}


@pytest.mark.parametrize(("result", "idle"), RESULTS.values(), ids=RESULTS)
def test_what_a_text_claims_of_a_result_without_fields_is_open(result: Json, idle: str) -> None:
    calls = {"calls": [{"tool": "f"}]}
    told = {"assistant": "The amount is 45."}
    assert verdict(events({"call": {"name": "f"}, "result": {"amount": 45}}, told), calls) == "pass"
    assert verdict(events({"call": {"name": "f"}, "result": result}, told), calls) == "undecided"
    assert verdict(events({"call": {"name": "f"}, "result": result}, {"assistant": "It is done."}), calls) == idle


BANS = [
    ({"id": "8"}, {"id": "8"}, "fail"),
    ({"id": "9"}, {"id": "8"}, "pass"),
    ('{"id": "8"', {"id": "8"}, "undecided"),
    ({"id": "8"}, {"id": {"kind": "natural_language", "criterion": "a live id"}}, "undecided"),
]


@pytest.mark.parametrize(
    "rubric", ["apple_trajectory", {"extends": "apple_trajectory", "compat": True}], ids=["own", "compat"]
)
@pytest.mark.parametrize(("given", "banned", "ends"), BANS)
def test_a_ban_that_nobody_can_check_is_not_kept(given: Json, banned: Json, ends: str, rubric: Json) -> None:
    trace = events({"call": {"name": "delete", "arguments": given}, "result": {"ok": True}})
    assert verdict(trace, {"disallowed": [{"tool": "delete", "args": banned}]}, rubric=rubric) == ends


def test_a_judge_that_stands_in_for_a_check_does_not_outweigh_it_where_it_is_open() -> None:
    rubric = {
        "id": "standing_in",
        "thresholds": {"fail": 0.8, "warn": 0.9},
        "criteria": [
            {"id": "x", "stage": "effect", "check": {"kind": "results"}},
            {
                "id": "y",
                "stage": "select",
                "weight": 9.0,
                "check": {"kind": "judge", "judge": "tool_selection", "unless": "x"},
            },
        ],
    }
    wanted = {"kind": "similar", "value": "b" * 6_000}
    request = {
        "rubric": rubric,
        "trace": events({"call": {"name": "f"}, "result": "a" * 6_000}),
        "expected": {"calls": [{"tool": "f", "result": wanted}]},
    }
    made = plan(request)
    assert conclude(made, {ask.key: (make_reply("right", 1.0),) for ask in made.asks}).verdict == "undecided"


def test_compat_refuses_a_matcher_inside_a_value() -> None:
    nested = {"text": {"a": [{"kind": "natural_language", "criterion": "kind"}, 1]}}
    request = {
        "rubric": {"extends": "arcade", "compat": True},
        "trace": events({"call": {"name": "f", "arguments": {"text": {"a": ["rude", 1]}}}}),
        "expected": {"calls": [{"tool": "f", "args": nested}]},
    }
    with pytest.raises(InputError, match="Arcade compares with values alone"):
        plan(request)


WORDS = {"kind": "natural_language", "criterion": "a greeting"}


@pytest.mark.parametrize(
    "wanted", [WORDS, {"kind": "any_of", "of": [WORDS]}, {"a": WORDS}], ids=["plain", "any_of", "nested"]
)
def test_words_that_nobody_judges_do_not_fail_a_call(wanted: Json) -> None:
    value = {"a": "hello"} if "a" in wanted else "hello"
    trace = events({"call": {"name": "f", "arguments": {"t": value}}, "result": {"ok": True}}, tools=[{"name": "f"}])
    assert verdict(trace, {"calls": [{"tool": "f", "args": {"t": wanted}}]}, rubric="three_layer") == "undecided"


def test_a_rate_over_decisions_is_open_where_a_call_is_not_read() -> None:
    def report(trace: Json) -> Json:
        return conclude(plan({"trace": trace, "expected": NONE, "judges": "off"}), mode="off")

    right, over = report(responses()), report(responses({"type": "function_call", **CALL}))
    unread = report(UNREAD["some_new_call"])
    for text in ("decide.accuracy >= 1", "decide.no_call.recall >= 1", "decide.no_call.f1 >= 1"):
        gates = [summarize_reports([right, other], assertions=[text]).gate for other in (right, over, unread)]
        assert [(gate.passed, gate.undecided) for gate in gates if gate] == [
            (True, False),
            (False, False),
            (False, True),
        ]


def lost(request: Json, change: Any) -> str:
    """The verdict on a request whose trace was changed after it was read."""
    made = plan({"judges": "off", **request})
    return conclude(plan_of(change(made.trace), made.rubric, made.expectation), mode="off").verdict


def hide_arguments(trace: Trace) -> Trace:
    steps = [replace(step, call=ToolCall(None, step.call.name, None, captured=False)) for step in trace.steps]
    return replace(trace, steps=tuple(steps))


@pytest.mark.parametrize(
    "rubric", ["arcade", "apple_trajectory", "uipath_tool_call_args", {"extends": "arcade", "compat": True}]
)
def test_arguments_that_telemetry_hides_are_not_wrong(rubric: Json) -> None:
    trace = events({"call": {"name": "f", "arguments": {"a": 1}}, "result": {"ok": True}})
    request = {"rubric": rubric, "trace": trace, "expected": {"calls": [{"tool": "f", "args": {"a": 1}}]}}
    assert lost(request, lambda trace: trace) == "pass"
    assert lost(request, hide_arguments) == "undecided"


def test_a_sandbox_that_failed_hides_no_error() -> None:
    """The error of the second call is lost with its result; the first was dealt with."""
    failed, fine = {"result": {"error": 1}, "is_error": True}, {"result": {"ok": 1}}
    calls = [
        {"call": {"name": name}, **result} for name, result in (("look", failed), ("look", fine), ("refund", failed))
    ]
    request = {"trace": events(*calls), "expected": {"calls": [{"tool": "look"}, {"tool": "look"}, {"tool": "refund"}]}}

    def break_sandbox(trace: Trace) -> Trace:
        *before, last = trace.steps
        return replace(trace, steps=(*before, replace(last, result=None)), state=State(fault="timed out"))

    assert lost(request, lambda trace: trace) == "fail"
    assert lost(request, break_sandbox) == "undecided"
