"""The rubrics that carry a method, as a whole: three layers, tau-bench's reward, nothing may change."""

from __future__ import annotations

from typing import Any

import pytest

from service import InputError, Report, score
from tests.core.carried_cases import codes, report, values

CARRIED = (
    "apple_trajectory", "future_agi_function_calling", "read_only", "tau_reward", "three_layer",
    "uipath_tool_call_args", "uipath_tool_call_count", "uipath_tool_call_order", "uipath_tool_call_output",
)  # fmt: skip


SEND = {
    "name": "send",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"},
     "on": {"type": "string", "format": "date"}, "to": {"type": "string"}}, "required": ["n"],
     "additionalProperties": False},
}  # fmt: skip
WORLDS = {"initial": {"sent": 0}, "final": {"sent": 1}}
LAYERS = ("decide", "schema", "ast", "exec")

# name, made, expected calls, then the layers: decide, schema, ast, exec (None: does not apply)
THREE_LAYERS: list[tuple[str, Any, Any, tuple[float | None, ...]]] = [
    ("all three", [["send", {"n": 1}]], [{"tool": "send", "args": {"n": 1}}], (1, 1, 1, 1)),
    ("an integer as 1.0", [["send", {"n": 1.0}]], [{"tool": "send", "args": {"n": 1}}], (1, 1, 1, 1)),
    ("white space", [["send", {"n": 1, "to": "Ann "}]], [{"tool": "send", "args": {"n": 1, "to": "Ann"}}], (1, 1, 1, 1)),
    ("thousands", [["send", {"n": 1, "to": "1,000"}]], [{"tool": "send", "args": {"n": 1, "to": "1000"}}], (1, 1, 1, 1)),
    ("another value", [["send", {"n": 2}]], [{"tool": "send", "args": {"n": 1}}], (1, 1, 0, 1)),
    ("a date that is none", [["send", {"n": 1, "on": "2024-13-45"}]], [{"tool": "send"}], (1, 0, 0, 1)),
    ("a text for an integer", [["send", {"n": "1"}]], [{"tool": "send", "args": {"n": 1}}], (1, 0, 0, 1)),
    ("true for an integer", [["send", {"n": True}]], [{"tool": "send", "args": {"n": 1}}], (1, 0, 0, 1)),
    ("an undeclared argument", [["send", {"n": 1, "z": 1}]], [{"tool": "send", "args": {"n": 1}}], (1, 0, 0, 1)),
    ("one wrong of two", [["send", {"n": 2}], ["send", {"n": 1}]],
     [{"tool": "send", "args": {"n": 1}}, {"tool": "send", "args": {"n": 3}}], (1, 1, 0, 1)),
    ("no call where none was due", [], "none", (1, None, None, 1)),
    ("a call where none was due", [["send", {"n": 1}]], "none", (0, 0, 0, 0)),
    ("no call where one was due", [], [{"tool": "send"}], (0, None, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("made", "calls", "layers"), [pytest.param(*row[1:], id=row[0]) for row in THREE_LAYERS])
def test_three_layers(made: Any, calls: Any, layers: tuple[float | None, ...]) -> None:
    case = {
        "made": made,
        "tools": [SEND],
        "state": WORLDS,
        "expected": {"calls": calls, "state": {"final": {"sent": 1}}},
    }
    found = report("three_layer", case, compat=False)
    assert tuple(values(found)[layer] for layer in LAYERS) == layers
    assert (found.verdict == "pass") == (0 not in layers)
    assert ("over_call" in codes(found)) == (calls == "none" and bool(made))


def test_a_broken_call_that_did_the_right_thing_passes_the_third_layer_alone() -> None:
    expected = {"calls": [{"tool": "send", "args": {"n": 1}}], "state": {"final": {"sent": 1}}}
    case = {"made": [["send", "{n"]], "tools": [SEND], "state": WORLDS, "expected": expected}
    assert [values(report("three_layer", case, compat=False))[layer] for layer in LAYERS] == [1, 0, 0, 1]


def test_without_a_state_the_third_layer_does_not_apply() -> None:
    case = {"made": [["send", {"n": 1}]], "tools": [SEND], "expected": {"calls": [{"tool": "send", "args": {"n": 1}}]}}
    found = report("three_layer", case, compat=False)
    assert values(found)["exec"] is None
    assert (found.verdict, found.score, found.coverage) == ("pass", 1.0, 1.0)


def test_a_path_that_nobody_asked_for_fails_the_third_layer() -> None:
    states = {"initial": {"sent": 0}, "final": {"sent": 1, "log": "x"}}
    expected = {"calls": [{"tool": "send"}], "state": {"final": {"sent": 1}}}
    case = {"made": [["send", {"n": 1}]], "tools": [SEND], "state": states, "expected": expected}
    found = report("three_layer", case, compat=False)
    assert values(found)["exec"] == 0.0
    assert [f.path for f in found.findings() if f.code == "state_unexpected"] == ["/state/final/log"]


def test_a_tool_schema_that_cannot_be_used_is_no_failure_of_the_model() -> None:
    broken = {"name": "send", "parameters": {"type": "intger"}}
    expected = {"calls": [{"tool": "send", "args": {"n": 1}}]}
    case = {"made": [["send", {"n": 1}]], "tools": [broken], "expected": expected}
    found = report("three_layer", case, compat=False)
    assert (values(found)["schema"], values(found)["ast"]) == (None, 1.0)


def run(
    said: str, *, outputs: list[str], final: Any = 1, end: str = "###STOP###", compat: bool = False, **more: Any
) -> Report:
    conversation = [
        {"role": "user", "content": "Please."},
        {"role": "assistant", "content": said},
        {"role": "user", "content": end},
    ]
    states = {"initial": {"n": 0}, "gold": {"n": 1}, "final": {"n": final}}
    record = {"format": "tau", "task_id": 1, "messages": conversation, "outputs": outputs, **states, **more}
    return score({"rubric": {"extends": "tau_reward", "compat": compat}, "trace": record})


# what was said, what had to be, the final state, the mark at the end, tau-bench's reward, ours
REWARDS: list[tuple[str, list[str], Any, str, float, float]] = [
    ("It is 1000.", ["1000"], 1, "###STOP###", 1, 1),
    ("It is $1,000.", ["1000"], 1, "###STOP###", 1, 1),
    ("It is 1,000.", ["1,000"], 1, "###STOP###", 0, 1),
    ("It is 1000.", ["1,000"], 1, "###STOP###", 0, 1),
    ("It is 1,000.50.", ["1000.5"], 1, "###STOP###", 1, 1),
    ("YES and no", ["yes", "NO"], 1, "###STOP###", 1, 1),
    ("yes", ["yes", "no"], 1, "###STOP###", 0, 0),
    ("yes", ["yes"], 2, "###STOP###", 0, 0),
    ("Hm.", [], 1, "###STOP###", 1, 1),
    ("Hm.", [], 0, "###STOP###", 0, 0),
    ("Hm.", [], 1, "Bye.", 0, 1),
    ("It is 15.", ["5"], 1, "###STOP###", 1, 0),
    ("It was yesterday.", ["yes"], 1, "###STOP###", 1, 0),
    ("It is 5.", ["5"], 1, "###STOP###", 1, 1),
    ("It is $5.00, yes?", ["5", "yes"], 1, "###STOP###", 1, 1),
    ("It is 5.25 or 1,005.", ["5"], 1, "###STOP###", 1, 0),
    ("HAT327 (a+b)", ["hat327", "(A+B)"], 1, "###STOP###", 1, 1),
    ("Hm.", [], 1.0, "###STOP###", 0, 1),
    ("Hm.", [], True, "###STOP###", 0, 0),
]


# the gold action, what to compare, the calls, tau2-bench's match, ours
ACTIONS: list[tuple[dict[str, Any], list[str] | None, list[dict[str, Any]], float, float]] = [
    ({"a": 1}, None, [{"a": 1}], 1, 1),
    ({"a": 1}, None, [{}], 1, 0),
    ({"a": 1}, None, [{"a": 1, "b": 2}], 0, 0),
    ({"a": 1}, None, [{"a": True}], 1, 0),
    ({"a": 1}, [], [{"a": 2}], 1, 0),
    ({"a": 1, "b": 2}, ["a"], [{"a": 1, "b": 3}], 1, 0),
    ({"a": 1}, None, [{"a": 2}, {"a": 1}], 1, 1),
    ({"a": 1}, None, [], 0, 0),
]


@pytest.mark.parametrize(("gold", "compared", "made", "theirs", "ours"), ACTIONS)
@pytest.mark.parametrize("compat", [True, False])
def test_gold_actions(gold: Any, compared: Any, made: Any, theirs: float, ours: float, compat: bool) -> None:
    action = {"name": "f", "kwargs": gold, "compare_args": compared}
    case = {"made": [["f", args] for args in made], "expected": {"format": "tau", "actions": [action]}}
    found = report("tau_reward", case, compat=compat)
    assert values(found)["actions"] == (theirs if compat else ours)


@pytest.mark.parametrize("made", [[], [["f", {"a": 1}]]])
def test_a_matcher_has_no_match_there_whatever_was_called(made: Any) -> None:
    expected = {"calls": [{"tool": "f", "args": {"a": {"kind": "range", "min": 1}}}]}
    with pytest.raises(InputError, match="/expected/calls/0/args/a"):
        report("tau_reward", {"made": made, "expected": expected}, compat=True)


def test_one_call_is_one_action() -> None:
    action = {"name": "f", "kwargs": {"a": 1}}
    case = {"made": [["f", {"a": 1}]], "expected": {"format": "tau", "actions": [action, action]}}
    assert [values(report("tau_reward", case, compat=compat))["actions"] for compat in (True, False)] == [1, 0]


@pytest.mark.parametrize(("said", "outputs", "final", "end", "theirs", "ours"), REWARDS)
def test_tau_rewards(said: str, outputs: list[str], final: Any, end: str, theirs: float, ours: float) -> None:
    found = run(said, outputs=outputs, final=final, end=end)
    assert (found.score, found.verdict) == (ours, "pass" if ours else "fail")
    assert ("not_ended" in codes(found)) == (end == "Bye.")
    upstream = run(said, outputs=outputs, final=final, end=end, compat=True)
    assert upstream.score == theirs
    assert ("compat_differs" in codes(upstream)) == (theirs != ours)


def test_a_call_can_end_a_run() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "transfer_to_human_agents", "arguments": "{}"}}
    said = [{"role": "user", "content": "Help."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert run("", outputs=[], compat=True, messages=said).score == 1.0


def test_without_a_final_state_there_is_no_reward() -> None:
    record = {"format": "tau", "task_id": 1, "messages": [{"role": "user", "content": "###STOP###"}], "gold": {"n": 1}}
    found = score({"rubric": "tau_reward", "trace": record})
    assert (found.verdict, found.score) == ("undecided", None)


def test_gold_without_actions_leaves_reading_free() -> None:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}]  # fmt: skip
    record = {"format": "tau", "task_id": 1, "messages": messages, "gold_actions": [], "tools": []}
    found = score({"rubric": "four_step", "trace": record})
    assert "over_call" not in codes(found)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ({"initial": {"a": [1]}, "final": {"a": [1.0]}}, "pass"),
        ({"initial": {"a": [1]}, "final": {"a": [1, 2]}}, "fail"),
        ({"initial": {}, "final": {"a": None}}, "fail"),
        ({"final": {"a": 1}}, "undecided"),
        (None, "undecided"),
    ],
    ids=str,
)
def test_nothing_may_change(state: Any, verdict: str) -> None:
    case: dict[str, Any] = {"made": [["write", {}]]} | ({} if state is None else {"state": state})
    assert report("read_only", case, compat=False).verdict == verdict


def test_what_should_have_changed_is_no_excuse() -> None:
    case = {"made": [], "state": {"initial": 0, "final": 1}, "expected": {"state": {"final": 1}}}
    found = report("read_only", case, compat=False)
    assert (found.verdict, found.score) == ("fail", 0.0)


LONG = {
    "tool": "f",
    "args": {"x": {"kind": "pattern", "pattern": "a+"}},
    "result": {"kind": "pattern", "pattern": "a+"},
}


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("apple_trajectory", "percentage"),
        ("apple_trajectory", "all_pass"),
        ("future_agi_function_calling", "function_call_accuracy"),
        ("future_agi_function_calling", "function_call_exact_match"),
        ("uipath_tool_call_args", "args"),
        ("uipath_tool_call_output", "output"),
    ],
)
def test_what_is_too_long_to_compare_is_no_score(name: str, criterion: str) -> None:
    made = {"made": [["f", {"x": "a" * 200_000}, "a" * 200_000]], "expected": {"ordered": [LONG]}}
    assert values(report(name, made, compat=False))[criterion] is None
    short = {"made": [["f", {"x": "a"}, "a"]], "expected": {"ordered": [LONG]}}
    assert values(report(name, short, compat=False))[criterion] == 1.0


@pytest.mark.parametrize(
    "name", [name for name in CARRIED if name not in ("read_only", "tau_reward", "uipath_tool_call_count")]
)
def test_a_call_of_a_tool_that_nobody_names_raises_nothing(name: str) -> None:
    for made in ([["a", {"x": 1}]], [["b"], ["a", {"x": 2}]], [["a", {"x": 1}], ["b"]]):
        expected = {"ordered": [{"tool": "a", "args": {"x": 1}, "result": None}, {"tool": "b"}]}
        for place in range(len(made) + 1):
            longer = [*made[:place], ["spare"], *made[place:]]
            one, other = (
                report(name, {"made": calls, "expected": expected}, compat=False).score for calls in (made, longer)
            )
            assert (other or 0.0) <= (one or 0.0)
