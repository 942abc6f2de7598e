"""The rubric that asks everything."""

from __future__ import annotations

from service import Registry, plan

TRACE = {
    "format": "callgrade",
    "tools": [{"name": "look", "parameters": {"type": "object"}}],
    "events": [{"user": "How is it?"}, {"call": {"name": "look", "arguments": {"at": "it"}},
     "result": '{"how": "fine"}'}, {"assistant": "It is rather well."}],
}  # fmt: skip

OTHERS = {"natural_language", "next_action", "step_quality"}
"""Of matchers in words, and of rubrics that look at single steps and actions."""


def test_every_judge_of_the_contract_is_asked():
    asked = [ask.judge.id for ask in plan({"trace": TRACE, "rubric": "contract_full"}).asks]
    assert sorted(asked) == sorted(Registry().judges.keys() - OTHERS)
